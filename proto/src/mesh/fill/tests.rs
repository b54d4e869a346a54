use super::*;
use crate::mesh::report::{Program, ProgramResult};

fn check_request(request: &Request, text: &str) {
    let line = request.encode();
    assert_eq!(std::str::from_utf8(&line).unwrap(), format!("{text}\n"));
    assert_eq!(Request::read(text.as_bytes()).as_ref(), Ok(request));
}

fn check_reply(reply: &Reply, text: &str) {
    assert_eq!(String::from_utf8(reply.encode()).unwrap(), format!("{text}\n"));
    assert_eq!(Reply::read(text.as_bytes()).as_ref(), Ok(reply));
}

#[test]
fn requests_are_written_as_the_page_shows() {
    check_request(&Request { id: 1, op: Op::Hello { protocol: 1 } }, r#"{"id":1,"op":"hello","protocol":1}"#);
    let plan = Digest::of(b"{}");
    let file = FillFile {
        path: "/etc/forge/app.ini".to_owned(),
        content: Zeroizing::new(b"a\0\xff".to_vec()),
        sha256: "00ff".to_owned(),
        sensitive: true,
    };
    assert!(!format!("{file:?}").contains('\0'));
    let write = Write { module: "forge".to_owned(), plan, revision: 81, files: vec![file] };
    check_request(
        &Request { id: 7, op: Op::Write(write) },
        &format!(
            r#"{{"id":7,"op":"write","module":"forge","plan":"{plan}","revision":81,"files":[{{"path":"/etc/forge/app.ini","content":"YQD/","sha256":"00ff","sensitive":true}}]}}"#
        ),
    );
}

#[test]
fn a_bad_request_keeps_its_id_where_it_can_be_told() {
    for (line, id) in [
        ("", None),
        ("[]", None),
        (r#"{"op":"hello"}"#, None),
        (r#"{"id":-1,"op":"hello"}"#, None),
        (r#"{"id":3,"op":"hello"}"#, Some(3)),
        (r#"{"id":3,"op":"dance"}"#, Some(3)),
        (r#"{"id":3,"op":"write","module":"a","plan":"sha1:0","revision":1}"#, Some(3)),
    ] {
        assert_eq!(Request::read(line.as_bytes()).map_err(|(id, _)| id), Err(id), "{line}");
    }
}

#[test]
fn content_is_plain_base64_within_its_bound() {
    let line = |content: &str| {
        let plan = Digest::of(b"");
        format!(
            r#"{{"id":1,"op":"write","module":"a","plan":"{plan}","revision":1,"files":[{{"path":"/a","content":{content},"sha256":""}}]}}"#
        )
    };
    let fault = |content: &str| Request::read(line(content).as_bytes()).unwrap_err().1.to_string();
    assert!(Request::read(line(r#""""#).as_bytes()).is_ok());
    assert_eq!(fault("1"), "files[0].content: is no string");
    assert_eq!(fault(r#""YQ""#), "files[0].content: is no standard base64");
    assert_eq!(fault(r#""\u0059Q==""#), "files[0].content: is no standard base64");
    let long = "A".repeat(MAX_FILE / 3 * 4 + 8);
    assert_eq!(fault(&format!("\"{long}\"")), "files[0].content: is longer than a file may be");
}

#[test]
fn replies_are_written_as_the_page_shows() {
    let hello = Hello { protocol: 1, node: "web1".to_owned() };
    check_reply(&Reply { id: 1, body: Body::Hello(hello) }, r#"{"id":1,"ok":{"protocol":1,"node":"web1"}}"#);
    let restored = FileReply {
        path: "/etc/forge/app.ini".to_owned(),
        action: Some(Action::Restored),
        sha256: Some("ab".to_owned()),
        err: None,
    };
    let failure = Failure { code: FileCode::PathRefused, reason: "etc/forge is a symbolic link".to_owned() };
    let refused =
        FileReply { path: "/etc/forge/x".to_owned(), action: None, sha256: None, err: Some(failure) };
    let told = ProgramReport {
        program: Program::Restart("forge.service".to_owned()),
        result: ProgramResult::Done,
        reason: None,
    };
    check_reply(
        &Reply {
            id: 7,
            body: Body::Written(Written { files: vec![restored, refused], programs: vec![told] }),
        },
        r#"{"id":7,"ok":{"files":[{"path":"/etc/forge/app.ini","action":"restored","sha256":"ab"},{"path":"/etc/forge/x","err":{"code":"path-refused","reason":"etc/forge is a symbolic link"}}],"programs":[{"restart":"forge.service","result":"done"}]}}"#,
    );
    let failure = Failure { code: RequestCode::Behind, reason: "knows revision 80".to_owned() };
    check_reply(
        &Reply { id: 9, body: Body::Failed(failure) },
        r#"{"id":9,"err":{"code":"behind","reason":"knows revision 80"}}"#,
    );
}

#[test]
fn a_code_that_is_new_is_understood_as_another() {
    let reply = Reply::read(br#"{"id":9,"err":{"code":"tired"}}"#).unwrap();
    assert_eq!(reply.body, Body::Failed(Failure { code: RequestCode::Other, reason: String::new() }));
    for line in ["{}", r#"{"id":1}"#, r#"{"id":1,"ok":{},"err":{"code":"behind"}}"#, r#"{"id":1,"ok":{}}"#] {
        assert!(Reply::read(line.as_bytes()).is_err(), "{line}");
    }
}
