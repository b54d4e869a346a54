//! T43: files that the mesh and a program own together, in every format: keys and comments of others, both line endings, no final
//! LF, damage, and three rounds of which only the first does anything.

#![cfg(test)]

use std::{fs, os::unix::fs::MetadataExt as _};

use quartermaster_proto::mesh::{fill::FileCode, report::Action};
use support::engine::{Engine, run_if_asked, until};

mod support;

const ENGINE: &str = "is_an_engine_where_it_is_started_as_one";

#[test]
fn is_an_engine_where_it_is_started_as_one() {
    run_if_asked();
}

/// A format: what a plan says of it, what a program's file holds, our part, our part later, and the file after each.
struct Case {
    name: &'static str,
    managed: &'static str,
    theirs: &'static str,
    ours: &'static str,
    later: &'static str,
    first: &'static str,
    second: &'static str,
    /// The file when our part is taken out.
    after: &'static str,
}

const BLOCK: &str = r##"{"format":"block","comment":"#"}"##;
const CASES: [Case; 12] = [
    Case {
        name: "block",
        managed: BLOCK,
        theirs: "# theirs\nx = 1\n",
        ours: "a\nb\n",
        later: "c\n",
        first: "# theirs\nx = 1\n# quartermaster begin forge\na\nb\n# quartermaster end forge\n",
        second: "# theirs\nx = 1\n# quartermaster begin forge\nc\n# quartermaster end forge\n",
        after: "# theirs\nx = 1\n",
    },
    Case {
        name: "block-crlf",
        managed: BLOCK,
        theirs: "x\r\ny",
        ours: "a\n",
        later: "",
        first: "x\r\ny\r\n# quartermaster begin forge\r\na\r\n# quartermaster end forge\r\n",
        second: "x\r\ny\r\n# quartermaster begin forge\r\n# quartermaster end forge\r\n",
        after: "x\r\ny\r\n",
    },
    Case {
        name: "block-at-start",
        managed: r#"{"format":"block","comment":"<!--","comment-end":"-->","at":"start"}"#,
        theirs: "<p>\n",
        ours: "<a>\n",
        later: "<b>\n",
        first: "<!-- quartermaster begin forge -->\n<a>\n<!-- quartermaster end forge -->\n<p>\n",
        second: "<!-- quartermaster begin forge -->\n<b>\n<!-- quartermaster end forge -->\n<p>\n",
        after: "<p>\n",
    },
    Case {
        name: "ini",
        managed: r#"{"format":"ini"}"#,
        theirs: "; theirs\n[Db]\nHost=old ; why\nother = 1\n\n[z]\nk = v\n",
        ours: "[Db]\nHost = new\n[mine]\nx = 1\n",
        later: "[Db]\nHost = newer\n",
        first: "; theirs\n[Db]\nHost=new\nother = 1\n\n[z]\nk = v\n\n[mine]\nx = 1\n",
        second: "; theirs\n[Db]\nHost=newer\nother = 1\n\n[z]\nk = v\n",
        after: "; theirs\n[Db]\nother = 1\n\n[z]\nk = v\n",
    },
    Case {
        name: "ini-crlf-without-end",
        managed: r#"{"format":"ini"}"#,
        theirs: "[a]\r\nx = 1",
        ours: "[a]\ny = 2\n",
        later: "[a]\ny = 3\n",
        first: "[a]\r\nx = 1\r\ny = 2\r\n",
        second: "[a]\r\nx = 1\r\ny = 3\r\n",
        after: "[a]\r\nx = 1\r\n",
    },
    Case {
        name: "toml",
        managed: r#"{"format":"toml"}"#,
        theirs: "# theirs\nx = 0x10 # sixteen\n\n[t]\nlist = [1,\n  2]\n",
        ours: "[t]\nport = 3000\nlist = [3]\n",
        later: "[t]\nport = 3001\n",
        first: "# theirs\nx = 0x10 # sixteen\n\n[t]\nlist = [3]\nport = 3000\n",
        second: "# theirs\nx = 0x10 # sixteen\n\n[t]\nport = 3001\n",
        after: "# theirs\nx = 0x10 # sixteen\n\n[t]\n",
    },
    Case {
        name: "toml-crlf",
        managed: r#"{"format":"toml"}"#,
        theirs: "x = 1\r\n",
        ours: "y = 2\n",
        later: "y = 3\n",
        first: "x = 1\r\ny = 2\r\n",
        second: "x = 1\r\ny = 3\r\n",
        after: "x = 1\r\n",
    },
    Case {
        name: "json",
        managed: r#"{"format":"json"}"#,
        theirs: "{\n    \"z\": 9007199254740993,\n    \"a\": {\"keep\": 1e400}\n}",
        ours: r#"{"a":{"port":3000},"list":[1,2]}"#,
        later: r#"{"a":{"port":3001}}"#,
        first: "{\n    \"z\": 9007199254740993,\n    \"a\": {\n        \"keep\": 1e400,\n        \"port\": 3000\n    },\n    \"list\": [1,2]\n}",
        second: "{\n    \"z\": 9007199254740993,\n    \"a\": {\n        \"keep\": 1e400,\n        \"port\": 3001\n    }\n}",
        after: "{\n    \"z\": 9007199254740993,\n    \"a\": {\n        \"keep\": 1e400\n    }\n}",
    },
    Case {
        name: "json-crlf",
        managed: r#"{"format":"json"}"#,
        theirs: "{\r\n  \"a\": 1\r\n}\r\n",
        ours: r#"{"b":"x"}"#,
        later: r#"{"b":"y"}"#,
        first: "{\r\n  \"a\": 1,\r\n  \"b\": \"x\"\r\n}\r\n",
        second: "{\r\n  \"a\": 1,\r\n  \"b\": \"y\"\r\n}\r\n",
        after: "{\r\n  \"a\": 1\r\n}\r\n",
    },
    Case {
        name: "yaml",
        managed: r#"{"format":"yaml"}"#,
        theirs: "# theirs\nz: &anchor 1 # one\nport: 80\nlist:\n  - *anchor\n",
        ours: "port: 3000\nmine:\n  x: 1\n",
        later: "port: 3001\n",
        first: "# theirs\nz: &anchor 1 # one\nport: 3000\nlist:\n  - *anchor\nmine:\n  x: 1\n",
        second: "# theirs\nz: &anchor 1 # one\nport: 3001\nlist:\n  - *anchor\n",
        after: "# theirs\nz: &anchor 1 # one\nlist:\n  - *anchor\n",
    },
    Case {
        name: "yaml-crlf-without-end",
        managed: r#"{"format":"yaml"}"#,
        theirs: "a: 1\r\nb: 2",
        ours: "c: 3\n",
        later: "c: 4\n",
        first: "a: 1\r\nb: 2\r\nc: 3\r\n",
        second: "a: 1\r\nb: 2\r\nc: 4\r\n",
        after: "a: 1\r\nb: 2\r\n",
    },
    Case {
        name: "absent",
        managed: r#"{"format":"ini"}"#,
        theirs: "",
        ours: "[a]\nx = 1\n",
        later: "[a]\nx = 2\n",
        first: "[a]\nx = 1\n",
        second: "[a]\nx = 2\n",
        after: "",
    },
];

fn members(managed: &str) -> String {
    format!(r#""owner-at-runtime":"managed","managed":{managed}"#)
}

#[test]
fn t43_our_part_is_put_in_kept_and_taken_out_and_the_rest_stays_byte_for_byte() {
    let mut engine = Engine::new();
    let files: Vec<_> = CASES.iter().map(|case| engine.file(case.name, &members(case.managed))).collect();
    let plan = engine.declare("forge", &files.join(","));
    for case in CASES.iter().filter(|case| !case.theirs.is_empty()) {
        fs::write(engine.path(case.name), case.theirs).unwrap();
    }
    engine.start(ENGINE);
    let put = |part: fn(&Case) -> &'static str, whole: fn(&Case) -> &'static str, action| {
        let fill = || CASES.iter().map(|case| engine.filled(case.name, part(case).as_bytes())).collect();
        let written = engine.write("forge", plan, fill());
        let inodes = || {
            CASES.iter().map(|case| fs::metadata(engine.path(case.name)).unwrap().ino()).collect::<Vec<_>>()
        };
        let held = inodes();
        for (case, file) in CASES.iter().zip(&written.files) {
            assert_eq!(file.action, Some(action), "{}: {:?}", case.name, file.err);
            assert_eq!(fs::read_to_string(engine.path(case.name)).unwrap(), whole(case), "{}", case.name);
        }
        for round in 2..=3 {
            let again = engine.write("forge", plan, fill());
            for (case, file) in CASES.iter().zip(&again.files) {
                assert_eq!(file.action, Some(Action::Unchanged), "{} in round {round}", case.name);
            }
        }
        assert_eq!(inodes(), held, "what did not change is the same file");
    };
    put(|case| case.ours, |case| case.first, Action::Written);
    put(|case| case.later, |case| case.second, Action::Written);
    // The plan drops the files: our part goes, and a file that we made and that holds nothing else.
    engine.declare("forge", "");
    for case in &CASES {
        let is_so = || match fs::read_to_string(engine.path(case.name)) {
            Ok(text) => !case.after.is_empty() && text == case.after,
            Err(_) => case.after.is_empty(),
        };
        until(case.name, is_so);
    }
}

#[test]
fn t43_a_damaged_file_is_refused_and_left_as_it_is() {
    let damaged = [
        ("begin-alone", BLOCK, "x\n# quartermaster begin forge\na\n"),
        ("end-alone", BLOCK, "# quartermaster end forge\n"),
        ("reversed", BLOCK, "# quartermaster end forge\n# quartermaster begin forge\n"),
        (
            "doubled",
            BLOCK,
            "# quartermaster begin forge\n# quartermaster begin forge\n# quartermaster end forge\n",
        ),
        ("ini-twice", r#"{"format":"ini"}"#, "[a]\nx = 1\nx = 2\n"),
        ("toml-broken", r#"{"format":"toml"}"#, "x = \n"),
        ("toml-mixed", r#"{"format":"toml"}"#, "a = 1\r\nb = 2\nc = 3\r\n"),
        ("json-broken", r#"{"format":"json"}"#, "{"),
        ("json-array", r#"{"format":"json"}"#, "[1]"),
        ("yaml-flow", r#"{"format":"yaml"}"#, "{a: 1}\n"),
        ("yaml-two", r#"{"format":"yaml"}"#, "a: 1\n---\nb: 2\n"),
        ("yaml-anchor", r#"{"format":"yaml"}"#, "x: &n 1\ny: *n\n"),
    ];
    let part = |managed: &str| match managed {
        managed if managed.contains("ini") => "[a]\nx = 3\n",
        managed if managed.contains("json") => r#"{"x":1}"#,
        managed if managed.contains("yaml") => "x: 2\n",
        managed if managed.contains("toml") => "x = 2\n",
        _ => "a\n",
    };
    let mut engine = Engine::new();
    for (name, managed, text) in damaged {
        fs::write(engine.path(name), text.replace("forge", name)).unwrap();
        engine.declare(name, &engine.file(name, &members(managed)));
    }
    engine.start(ENGINE);
    for (name, managed, text) in damaged {
        let plan = engine.declare(name, &engine.file(name, &members(managed)));
        let before = fs::metadata(engine.path(name)).unwrap();
        let written = engine.write(name, plan, vec![engine.filled(name, part(managed).as_bytes())]);
        let refused = written.files[0].err.as_ref().map(|err| err.code);
        assert_eq!(refused, Some(FileCode::ManagedDamaged), "{name}");
        assert_eq!(fs::read_to_string(engine.path(name)).unwrap(), text.replace("forge", name), "{name}");
        let after = fs::metadata(engine.path(name)).unwrap();
        assert_eq!((before.ino(), before.mtime_nsec()), (after.ino(), after.mtime_nsec()), "{name}");
    }
}
