//! The document of the API.

use utoipa::openapi::OpenApi as Document;
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityScheme};
use utoipa::{Modify, OpenApi};

use super::api;

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Quartermaster",
        description = "What one instance of Quartermaster tells of itself, and what it may be told. Changes need the admin token as \
                       `Authorization: Bearer`; looking needs the read token or the admin token where a read token is configured. \
                       Any route answers 421 when it is asked for under a name that is not one of the listener's.",
        license(name = "Apache-2.0", identifier = "Apache-2.0"),
    ),
    paths(
        api::status, api::overview, api::hosts, api::host, api::retry, api::pause, api::resume, api::discover, api::document
    ),
    tags(
        (name = "watch", description = "Look; nothing changes"),
        (name = "change", description = "Change; logged and audited with who and why"),
    ),
    modifiers(&Tokens),
)]
struct Api;

/// How tokens are shown.
struct Tokens;

impl Modify for Tokens {
    fn modify(&self, document: &mut Document) {
        let components = document.components.get_or_insert_default();
        components.add_security_scheme("admin", SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer)));
    }
}

/// The document.
pub(super) fn document() -> Document {
    Api::openapi()
}
