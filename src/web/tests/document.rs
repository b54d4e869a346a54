//! The document of the API against the API.

use std::collections::BTreeSet;

use serde_json::Value;

use super::schema::faults;
use super::support::*;
use crate::web::api::routes;

const ORDER: &str = "{\"who\": \"kim\", \"why\": \"maintenance\"}";

/// Method and path of everything in the document.
fn documented(document: &Value) -> BTreeSet<(String, String)> {
    let mut all = BTreeSet::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for method in item.as_object().unwrap().keys().filter(|word| word.as_str() != "parameters") {
            all.insert((method.to_uppercase(), path.clone()));
        }
    }
    all
}

async fn document(site: &Site) -> Value {
    let answer = site.get("/api/v1/openapi.json").await;
    assert_eq!((answer.status, answer.header("content-type")), (200, Some("application/json")));
    answer.json()
}

#[actix_web::test]
async fn the_document_names_every_route_and_no_other() {
    let site = Site::open().await;
    let document = document(&site).await;
    assert!(document["openapi"].as_str().unwrap().starts_with("3.1"), "{}", document["openapi"]);
    let served: BTreeSet<_> =
        routes().iter().map(|served| (served.method.to_string(), served.path.to_owned())).collect();
    assert_eq!(served, documented(&document));
    for (method, path) in served {
        let path = path.replace("{host}", "web-3.example.net");
        let status = site.ask(&method, &path).await.status;
        assert!(![404, 405].contains(&status), "{method} {path} is not served: {status}");
        let other = if method == "GET" { "POST" } else { "GET" };
        assert_eq!(site.ask(other, &path).await.status, 405, "{other} {path}");
    }
    for path in ["/api/v1", "/api/v1/", "/api/v1/hosts/", "/api/v1/actors", "/api/v2/status"] {
        assert_eq!(site.get(path).await.status, 404, "{path}");
    }
    site.close().await;
}

#[actix_web::test]
async fn every_operation_says_what_it_is_and_what_it_needs() {
    let site = Site::open().await;
    let document = document(&site).await;
    for (method, path) in documented(&document) {
        let operation = &document["paths"][&path][method.to_lowercase()];
        assert!(operation["summary"].is_string() && operation["operationId"].is_string(), "{path}");
        let secured = operation["security"]
            .as_array()
            .is_some_and(|list| list.iter().any(|s| s.get("admin").is_some()));
        assert_eq!(secured, method == "POST", "{path}");
        let named = operation["parameters"].as_array().into_iter().flatten().any(|p| p["name"] == "host");
        assert_eq!(named, path.contains("{host}"), "{path}");
    }
    assert_eq!(document["components"]["securitySchemes"]["admin"]["scheme"], "bearer");
    site.close().await;
}

/// One request, and the status it should have.
struct Asked {
    method: &'static str,
    /// As in the document.
    template: &'static str,
    path: &'static str,
    token: Option<&'static str>,
    body: &'static str,
    status: u16,
}

const fn look(template: &'static str, path: &'static str, status: u16) -> Asked {
    Asked { method: "GET", template, path, token: Some(READER), body: "", status }
}

const fn change(
    template: &'static str,
    path: &'static str,
    token: Option<&'static str>,
    status: u16,
) -> Asked {
    Asked { method: "POST", template, path, token, body: ORDER, status }
}

#[actix_web::test]
async fn every_answer_is_what_the_document_says() {
    let site = Site::open_with(tokens(true, true), None).await;
    let document = document(&site).await;
    let (host, retry) = ("/api/v1/hosts/{host}", "/api/v1/hosts/{host}/retry");
    let web3 = "/api/v1/hosts/web-3.example.net/retry";
    let mut asked = vec![
        look("/api/v1/status", "/api/v1/status", 200),
        look("/api/v1/overview", "/api/v1/overview", 200),
        look("/api/v1/hosts", "/api/v1/hosts", 200),
        look("/api/v1/hosts", "/api/v1/hosts?state=in_flight&text=node&most=3", 200),
        look("/api/v1/hosts", "/api/v1/hosts?after=node-100.example.net&most=500", 200),
        look("/api/v1/hosts", "/api/v1/hosts?most=501", 400),
        look("/api/v1/hosts", "/api/v1/hosts?most=0", 400),
        look("/api/v1/hosts", "/api/v1/hosts?colour=red", 400),
        look(host, "/api/v1/hosts/web-3.example.net", 200),
        look(
            host,
            "/api/v1/hosts/%22onmouseover=alert(1)%2F%2F%3Cscript%3Cimg%2Fsrc='x'&amp;%252e%252e%2F.;a%3Fb%23c",
            200,
        ),
        look(host, "/api/v1/hosts/nobody", 404),
        look("/api/v1/openapi.json", "/api/v1/openapi.json", 200),
        change("/api/v1/pause", "/api/v1/pause", Some(ADMIN), 200),
        change("/api/v1/resume", "/api/v1/resume", Some(ADMIN), 200),
        change("/api/v1/discover", "/api/v1/discover", Some(ADMIN), 409),
        change(retry, web3, Some(ADMIN), 200),
        change(retry, web3, Some(READER), 403),
        change(retry, web3, None, 401),
        change("/api/v1/pause", "/api/v1/pause", None, 401),
        change("/api/v1/discover", "/api/v1/discover", Some(READER), 403),
    ];
    for path in ["/api/v1/status", "/api/v1/overview", "/api/v1/hosts"] {
        asked.push(Asked { token: None, ..look(path, path, 401) });
    }
    asked.push(Asked { body: "{}", ..change("/api/v1/resume", "/api/v1/resume", Some(ADMIN), 400) });
    for Asked { method, template, path, token, body, status } in asked {
        let token = token.map(|token| format!("Bearer {token}"));
        let headers: Vec<_> = token.iter().map(|token| ("Authorization", token.as_str())).collect();
        let answer = site.send(method, path, &headers, body).await;
        assert_eq!(answer.status, status, "{method} {path}: {}", answer.body);
        check(&document, method, template, &answer);
    }
    // Last, since they are held against the address: too many wrong tokens, which every route that takes one may answer.
    for _ in 0..6 {
        site.send("POST", "/api/v1/pause", &[("Authorization", "Bearer wrong")], ORDER).await;
    }
    let throttled = site.send("POST", "/api/v1/pause", &[("Authorization", "Bearer wrong")], ORDER).await;
    assert_eq!(throttled.status, 429);
    check(&document, "POST", "/api/v1/pause", &throttled);
    let throttled = site.send("GET", "/api/v1/status", &[("Authorization", "Bearer wrong")], "").await;
    assert_eq!(throttled.status, 429);
    check(&document, "GET", "/api/v1/status", &throttled);
    site.close().await;
}

#[actix_web::test]
async fn a_part_that_does_not_answer_is_a_documented_503() {
    let site = Site::open().await;
    let document = document(&site).await;
    *site.desk.is_silent.lock().unwrap() = true;
    let answer = site.get("/api/v1/overview").await;
    assert_eq!((answer.status, answer.json()["code"].as_str()), (503, Some("unavailable")));
    check(&document, "GET", "/api/v1/overview", &answer);
    site.close().await;
}

/// The answer's status is in the document, and its body is what the document says.
fn check(document: &Value, method: &str, template: &str, answer: &Answer) {
    let operation = &document["paths"][template][method.to_lowercase()];
    let response = &operation["responses"][answer.status.to_string()];
    assert!(
        response.is_object(),
        "{method} {template} answers {}, which is not in the document",
        answer.status
    );
    assert_eq!(answer.header("content-type"), Some("application/json"), "{template}");
    let schema = &response["content"]["application/json"]["schema"];
    let faults = faults(document, schema, &answer.json());
    assert!(faults.is_empty(), "{method} {template} {}: {faults:#?}", answer.status);
}
