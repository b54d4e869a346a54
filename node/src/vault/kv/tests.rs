//! What HashiCorp's plugin of the kind answered, and what stands before it says, read.

use super::wire::{done, names, own, read, stored, write, written};
use super::*;
use crate::vault::store::Value;
use zeroize::Zeroizing;

fn envelope(data: &str) -> String {
    format!(
        r#"{{"request_id":"8f1c","lease_id":"","renewable":false,"lease_duration":0,"data":{data},"wrap_info":null,"warnings":null,"auth":null}}"#
    )
}

fn version(number: u64, deleted: &str) -> String {
    format!(
        r#"{{"created_time":"2026-11-29T18:00:0{number}.123Z","custom_metadata":null,"deletion_time":"{deleted}","destroyed":false,"version":{number}}}"#
    )
}

fn mark(number: u64) -> Mark {
    Mark { version: number, created: format!("2026-11-29T18:00:0{number}.123Z") }
}

fn value(bytes: &[u8]) -> Value {
    Value::new(Zeroizing::new(bytes.to_vec()))
}

#[track_caller]
fn check_read(status: u16, body: &str, expected: Result<Read, &str>) {
    match (read(status, body.as_bytes()), expected) {
        (Ok(found), Ok(expected)) => assert_eq!(found, expected),
        (Err(error), Err(says)) => assert!(format!("{error:?}").contains(says), "{error:?}"),
        (found, expected) => panic!("{found:?}, not {expected:?}"),
    }
}

#[test]
fn a_value_is_text_or_bytes() {
    let with = |members: &str| envelope(&format!(r#"{{"data":{members},"metadata":{}}}"#, version(3, "")));
    let found = |bytes: &[u8]| Ok(Read::Found { value: value(bytes), mark: mark(3) });
    check_read(200, &with(r#"{"value":"a\nb","note":1}"#), found(b"a\nb"));
    check_read(200, &with(r#"{"value":""}"#), found(b""));
    check_read(200, &with(r#"{"value":"AP8=","encoding":"base64"}"#), found(b"\0\xff"));
    check_read(200, &with(r#"{"value":"?","encoding":"base64"}"#), Err("Refused"));
    check_read(200, &with(r#"{"value":"x","encoding":"rot13"}"#), Err("Refused"));
    check_read(200, &with(r#"{"password":"x"}"#), Err("no text `value`"));
    check_read(200, &with(r#"{"value":7}"#), Err("no text `value`"));
}

#[test]
fn only_a_name_that_is_not_there_is_absent() {
    let deleted = envelope(&format!(r#"{{"data":null,"metadata":{}}}"#, version(2, "2026-11-29T18:00:05Z")));
    check_read(404, &deleted, Ok(Read::Absent { last: 2 }));
    check_read(404, r#"{"errors":[]}"#, Ok(Read::Absent { last: 0 }));
    for (status, body, says) in [
        (404, r#"{"errors":["no handler for route \"other/data/x\". route entry not found."]}"#, "Silent"),
        (404, "{}", "Silent"),
        (404, "<html>not found</html>", "Silent"),
        (503, r#"{"errors":["Vault is sealed"]}"#, "Vault is sealed"),
        (500, r#"{"errors":["internal error"]}"#, "Silent"),
        (502, "bad gateway", "Silent"),
        (429, r#"{"errors":["request path \"x\": rate limit quota exceeded"]}"#, "Silent"),
        (307, "", "Silent"),
        (400, r#"{"errors":["missing client token"]}"#, "Silent"),
        (403, r#"{"errors":["permission denied"]}"#, "Refused"),
        (200, "", "Silent"),
        (200, r#"{"data":{"value":"x"}}"#, "Silent"),
    ] {
        check_read(status, body, Err(says));
        if status != 200 {
            assert!(
                stored(status, body.as_bytes()).is_err() && names(status, body.as_bytes()).is_err(),
                "{body}"
            );
        }
    }
}

#[test]
fn metadata_says_which_version_a_value_has() {
    let with = |second: &str| {
        let versions = format!(r#"{{"1":{},"2":{}}}"#, version(1, ""), version(2, second));
        envelope(&format!(
            r#"{{"cas_required":false,"current_version":2,"oldest_version":0,"versions":{versions}}}"#
        ))
    };
    let found = |body: &str| stored(200, body.as_bytes()).unwrap();
    assert_eq!(found(&with("")), Stored { last: 2, mark: Some(mark(2)) });
    assert_eq!(found(&with("2026-11-29T18:00:05Z")), Stored { last: 2, mark: None });
    assert_eq!(found(&envelope(r#"{"current_version":0,"versions":{}}"#)), Stored { last: 0, mark: None });
    assert_eq!(stored(404, br#"{"errors":[]}"#), Ok(Stored { last: 0, mark: None }));
    assert_eq!(names(200, envelope(r#"{"keys":["a/","b"]}"#).as_bytes()).unwrap(), ["a/", "b"]);
    assert_eq!(names(404, br#"{"errors":[]}"#), Ok(Vec::new()));
}

#[test]
fn a_value_is_written_over_the_version_that_is_named() {
    let text = |value: &Value, last| String::from_utf8(write(value, last).to_vec()).unwrap();
    assert_eq!(text(&value(b"a\"b"), 4), r#"{"options":{"cas":4},"data":{"value":"a\"b"}}"#);
    assert_eq!(
        text(&value(b"\0\xff"), 0),
        r#"{"options":{"cas":0},"data":{"value":"AP8=","encoding":"base64"}}"#
    );
    assert_eq!(written(200, envelope(&version(5, "")).as_bytes()), Ok(mark(5)));
    let raced = br#"{"errors":["check-and-set parameter did not match the current version"]}"#;
    assert_eq!(written(400, raced), Err(KvError::Raced));
    assert_eq!(done(204, b""), Ok(()));
    assert!(matches!(done(403, b"{}"), Err(KvError::Refused(_))));
    assert!(matches!(own(403, br#"{"errors":["permission denied"]}"#), Err(KvError::Silent(_))));
}

#[test]
fn a_version_is_older_only_by_its_number_and_its_time() {
    let at = |version, created: &str| Mark { version, created: created.to_owned() };
    let held = at(4, "2026-11-29T18:00:00.5Z");
    assert_eq!(held.beside(None), Seen::New);
    assert_eq!(held.beside(Some(&held)), Seen::Same);
    assert_eq!(at(5, "2026-11-29T17:00:00Z").beside(Some(&held)), Seen::New);
    assert_eq!(at(3, "2026-11-29T18:00:00.25Z").beside(Some(&held)), Seen::Old);
    // All versions were deleted, and its numbers begin anew.
    assert_eq!(at(1, "2026-11-29T18:00:01Z").beside(Some(&held)), Seen::New);
}

#[test]
fn values_cross_no_network_in_the_clear() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    std::fs::write(&file, "t").unwrap();
    let made = |address: &str, mount: &str| {
        KvClient::new(KvSettings::new(
            address.to_owned(),
            mount.to_owned(),
            KvAuth::Token { file: file.clone() },
        ))
    };
    assert!(matches!(made("https://bao.example:8200", "secret"), Err(KvConfigError::TooOpen { .. })));
    let private = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(&file, private).unwrap();
    for good in [
        "https://bao.example:8200",
        "https://bao.example/prefix/",
        "http://127.0.0.1:8200",
        "http://[::1]:8200",
    ] {
        assert!(made(good, "team/secret").is_ok(), "{good}");
    }
    for bad in
        ["http://bao.example:8200", "ftp://bao.example", "bao.example:8200", "https://u:p@bao.example", ""]
    {
        assert!(matches!(made(bad, "secret"), Err(KvConfigError::Address(_))), "{bad}");
    }
    for bad in ["", "a//b", "../sys", "/secret"] {
        assert!(matches!(made("https://bao.example", bad), Err(KvConfigError::Mount(_))), "{bad}");
    }
}
