//! T16: archives over https, with the system's roots: a good certificate, a bad one, redirects, and `http:`.

#![cfg(test)]

use std::{env, process::Command, sync::Arc};

use quartermaster_node::client::templates::{FetchError, Fetcher};
use quartermaster_proto::mesh::plan::Reference;
use support::web::{Asked, Web, fixture};

mod support;

/// What this process is to fetch, where it is started for that.
const FETCH: &str = "QM_TEST_FETCH";

/// Fetches what it is told, with the roots that its environment names.
#[tokio::test]
async fn fetches_where_it_is_started_for_that() {
    let Ok(address) = env::var(FETCH) else { return };
    let fetched = match Fetcher::new(None).fetch(&Reference::Https(address)).await {
        Ok(bytes) => String::from_utf8(bytes).unwrap(),
        Err(FetchError::Waiting(why)) => why.as_str().to_owned(),
        Err(other) => other.to_string(),
    };
    println!("fetched {fetched}");
}

/// What a process fetches that believes these roots.
fn fetched(address: &str, roots: &str) -> String {
    let ran = Command::new(env::current_exe().unwrap())
        .args(["--exact", "fetches_where_it_is_started_for_that", "--nocapture"])
        .env(FETCH, address)
        .env("SSL_CERT_FILE", fixture(roots))
        .env_remove("SSL_CERT_DIR")
        .output()
        .unwrap();
    let said = String::from_utf8(ran.stdout).unwrap();
    said.split_once("fetched ").unwrap_or_else(|| panic!("{said}")).1.lines().next().unwrap().to_owned()
}

fn site(is_tls: bool, elsewhere: String) -> Web {
    Web::start(
        is_tls,
        Arc::new(move |Asked { path, .. }| {
            let to = |place: String| (302, vec![("location", place)], Vec::new());
            match path.split_at(2) {
                ("/a", "") => (200, Vec::new(), b"archive".to_vec()),
                // As many redirects as it says.
                ("/r", "0") => to("/a".to_owned()),
                ("/r", left) => to(format!("/r{}", left.parse::<u8>().unwrap() - 1)),
                ("/x", _) => to(elsewhere.clone()),
                ("/e", _) => (500, Vec::new(), Vec::new()),
                _ => (404, Vec::new(), Vec::new()),
            }
        }),
    )
}

#[test]
fn t16_an_archive_is_fetched_over_https_alone_and_from_whom_the_system_believes() {
    let plain = site(false, String::new());
    let web = site(true, format!("http://localhost:{}/a", plain.address.port()));
    let at = |path: &str| format!("https://localhost:{}{path}", web.address.port());
    for (path, roots, expected) in [
        ("/a", "ca.pem", "archive"),
        // Somebody else's certificate: the server's own is no root.
        ("/a", "server.key", "no-answer"),
        ("/r2", "ca.pem", "archive"),
        ("/r3", "ca.pem", "no-answer"),
        ("/x", "ca.pem", "no-answer"),
        ("/none", "ca.pem", "absent"),
        ("/e", "ca.pem", "no-answer"),
    ] {
        assert_eq!(fetched(&at(path), roots), expected, "{path} with {roots}");
    }
    let other_name = format!("https://127.0.0.2:{}/a", web.address.port());
    assert_eq!(fetched(&other_name, "ca.pem"), "no-answer");
    let clear = format!("https://localhost:{}/a", plain.address.port());
    assert_eq!(fetched(&clear, "ca.pem"), "no-answer");
}

#[test]
fn t16_an_address_without_tls_or_with_a_credential_is_no_reference() {
    assert!("https://templates.example/a.tar".parse::<Reference>().is_ok());
    for bad in [
        "http://templates.example/a.tar",
        "https://user:pw@templates.example/a.tar",
        "ftp://x/a.tar",
        "file:a.tar",
    ] {
        assert!(bad.parse::<Reference>().is_err(), "{bad}");
    }
}
