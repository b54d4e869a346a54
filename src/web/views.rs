//! The one shape of the API that is nobody else's.

use serde::Serialize;
use utoipa::ToSchema;

/// Every answer of the API that is no success.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct ErrorView {
    /// A stable word.
    pub code: String,
    /// A sentence for people.
    pub error: String,
}
