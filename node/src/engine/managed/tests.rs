use proptest::prelude::*;

use super::*;

fn block() -> Format {
    Format::Block { comment: "#".to_owned(), end: None, at_start: false }
}

fn text(content: &[u8]) -> String {
    String::from_utf8(content.to_vec()).unwrap()
}

#[track_caller]
fn check(format: &Format, target: &str, fragment: &str, expected: &str) {
    let target = (!target.is_empty()).then_some(target.as_bytes());
    let merged = merge(format, "forge", target, fragment.as_bytes(), &Keys::new()).unwrap();
    assert_eq!(text(&merged.content), expected);
    let again = merge(format, "forge", Some(&merged.content), fragment.as_bytes(), &merged.ours).unwrap();
    assert_eq!(text(&again.content), expected, "the second round changes nothing");
    assert_eq!(again.ours, merged.ours);
}

#[track_caller]
fn check_steps(format: &Format, target: &str, fragments: &[&str], expected: &str) {
    let mut ours = Keys::new();
    let mut content = target.as_bytes().to_vec();
    for fragment in fragments {
        let merged = merge(format, "forge", Some(&content), fragment.as_bytes(), &ours).unwrap();
        ours = merged.ours;
        content = merged.content.to_vec();
    }
    assert_eq!(text(&content), expected);
    let left = withdraw(format, "forge", &content, &ours).unwrap();
    assert_eq!(text(&left).trim_end(), target.trim_end(), "what is withdrawn leaves what was there");
}

#[track_caller]
fn check_damaged(format: &Format, target: &str, fragment: &str, says: &str) {
    let error =
        merge(format, "forge", Some(target.as_bytes()), fragment.as_bytes(), &Keys::new()).unwrap_err();
    assert!(error.to_string().contains(says), "{error}");
}

const BLOCK: &str = "# quartermaster begin forge\nx=1\n# quartermaster end forge\n";

#[test]
fn a_block_goes_to_the_end_or_the_start() {
    check(&block(), "", "x=1\n", BLOCK);
    check(&block(), "own\n", "x=1", &format!("own\n{BLOCK}"));
    check(&block(), "no end", "x=1", &format!("no end\n{BLOCK}"));
    let start = Format::Block { comment: "#".to_owned(), end: None, at_start: true };
    check(&start, "own\n", "x=1\n", &format!("{BLOCK}own\n"));
}

#[test]
fn a_block_stays_where_it_is_and_comments_may_have_an_end() {
    check_steps(&block(), "a\nb\n", &["x=0\n", "x=1\n"], &format!("a\nb\n{BLOCK}"));
    let html = Format::Block { comment: "<!--".to_owned(), end: Some("-->".to_owned()), at_start: false };
    check(&html, "", "p\n", "<!-- quartermaster begin forge -->\np\n<!-- quartermaster end forge -->\n");
}

#[test]
fn a_block_of_a_crlf_file_has_crlf_lines() {
    let expected = format!("a\r\n{}", BLOCK.replace('\n', "\r\n"));
    check(&block(), "a\r\n", "x=1\n", &expected);
}

#[test]
fn damaged_markers_are_refused() {
    let (begin, end) = ("# quartermaster begin forge\n", "# quartermaster end forge\n");
    for (target, says) in [
        (begin.to_owned(), "end is missing"),
        (end.to_owned(), "beginning is missing"),
        (format!("{end}{begin}"), "end stands before"),
        (format!("{begin}{begin}{end}"), "beginning stands twice"),
        (format!("{begin}{end}{end}"), "end stands twice"),
        (format!("{begin}# quartermaster begin hub\n{end}"), "another module's marker"),
    ] {
        check_damaged(&block(), &target, "x\n", says);
    }
    check_damaged(&block(), "", "# quartermaster end hub\n", "holds a marker line");
}

#[test]
fn ini_keys_are_set_where_they_stand() {
    check(
        &Format::Ini,
        "; theirs\n[a]\n  Port=1 \nflag\n\n[b]\nx = 1\n",
        "[a]\nPort = 2\nnew=3\n[c]\ny = 4\n",
        "; theirs\n[a]\n  Port=2\nflag\nnew=3\n\n[b]\nx = 1\n\n[c]\ny = 4\n",
    );
    check(&Format::Ini, "x=1", "y = 2", "x=1\ny = 2\n");
    check(&Format::Ini, "[a]\r\nx=1\r\n", "[a]\nx=2", "[a]\r\nx=2\r\n");
    check(&Format::Ini, "", "[a]\nx=2", "[a]\nx=2\n");
}

#[test]
fn ini_keys_that_left_go_and_so_does_an_empty_section_of_ours() {
    check_steps(&Format::Ini, "[a]\nx=1\n", &["[a]\ny=1\nz=2\n[b]\nk=1\n", "[a]\nz=2\n"], "[a]\nx=1\nz=2\n");
    check_steps(&Format::Ini, "[b]\n# keep\n", &["[b]\nk=1\n"], "[b]\n# keep\nk=1\n");
}

#[test]
fn ini_values_over_several_lines_are_replaced_whole() {
    check(&Format::Ini, "[a]\nx = 1\n  and 2\n  and 3\ny=1\n", "[a]\nx = 9", "[a]\nx = 9\ny=1\n");
}

#[test]
fn ini_doubts_are_refused() {
    check_damaged(&Format::Ini, "[a]\nx=1\nx=2\n", "[a]\nx=3", "twice");
    check_damaged(&Format::Ini, "", "[a]\nx=3\nx=4", "twice");
    check_damaged(&Format::Ini, "", "just text", "neither");
}

#[test]
fn toml_keeps_comments_and_layout() {
    check(
        &Format::Toml,
        "# top\nname = 'x'   # why\n\n[db]\nport=1 # one\nlist = [ 1,\n 2 ]\n",
        "name = \"y\"\n[db]\nport = 2\n[web.tls]\non = true\n",
        "# top\nname = \"y\"   # why\n\n[db]\nport=2 # one\nlist = [ 1,\n 2 ]\n\n[web.tls]\non = true\n",
    );
    check(&Format::Toml, "", "a.b = 1\n", "[a]\nb = 1\n");
    check(&Format::Toml, "a = 1", "a = 1", "a = 1");
    check(&Format::Toml, "a = 1\r\n", "b = 2", "a = 1\r\nb = 2\r\n");
    check(&Format::Toml, "x = 1\n", "[[s]]\na = 1\n[[s]]\na = 2\n", "x = 1\n[[s]]\na = 1\n[[s]]\na = 2\n");
}

#[test]
fn toml_keys_that_left_go() {
    check_steps(
        &Format::Toml,
        "[a]\nx = 1\n",
        &["[a]\ny = 1\n[b.c]\nk = 1\n", "[a]\nz = 1\n"],
        "[a]\nx = 1\nz = 1\n",
    );
    check_steps(&Format::Toml, "k = 1\n", &["b = 1\n", "b.c = 1\n", "b = 2\n"], "k = 1\nb = 2\n");
}

#[test]
fn toml_that_does_not_parse_is_refused_without_its_text() {
    check_damaged(&Format::Toml, "a = 1\nsecret = = 2\n", "b = 1", "it does not parse (line 2)");
    check_damaged(&Format::Toml, "", "b = ", "the filled part is not TOML");
    check_damaged(&Format::Toml, "b = 1\n", "[b]\nc = 1", "a table on one side alone");
}

#[test]
fn json_keeps_digits_order_and_indentation() {
    check(
        &Format::Json,
        "{\n    \"z\": 9007199254740993,\n    \"a\": {\"x\": [1,  2], \"big\": 1e400}\n}\n",
        "{\"a\":{\"y\":1.50}}",
        "{\n    \"z\": 9007199254740993,\n    \"a\": {\n        \"x\": [1,  2],\n        \"big\": 1e400,\n        \"y\": 1.50\n    }\n}\n",
    );
    check(&Format::Json, "{\"a\":1}", "{\"b\":2}", "{\"a\":1,\"b\":2}");
    check(&Format::Json, "{ \"a\" : 1 }", "{\"a\":1}", "{ \"a\" : 1 }");
    check(&Format::Json, "", "{\"b\":2}", "{\n  \"b\": 2\n}\n");
}

#[test]
fn json_members_that_left_go() {
    check_steps(
        &Format::Json,
        "{\n  \"a\": {\n    \"x\": 1\n  }\n}\n",
        &["{\"a\":{\"y\":1},\"b\":{\"c\":1}}", "{\"a\":{\"y\":2}}"],
        "{\n  \"a\": {\n    \"x\": 1,\n    \"y\": 2\n  }\n}\n",
    );
}

#[test]
fn json_doubts_are_refused() {
    check_damaged(&Format::Json, "{\"a\":1,\"a\":2}", "{}", "twice");
    check_damaged(&Format::Json, "[1]", "{}", "the file is not a JSON object");
    check_damaged(&Format::Json, "{}", "{", "the filled part is not a JSON object");
    check_damaged(&Format::Json, "{\"a\":1}", "{\"a\":{\"b\":1}}", "one side alone");
}

#[test]
fn yaml_keys_are_replaced_as_whole_lines() {
    check(
        &Format::Yaml,
        "# top\na: 1\n\n# about b\nb:\n  - 1\n  # in\n\n# tail\nc: |\n  text: x\n",
        "b:\n- 2\nd: 4",
        "# top\na: 1\n\n# about b\nb:\n- 2\n\n# tail\nc: |\n  text: x\nd: 4\n",
    );
    check(&Format::Yaml, "a: 1", "a: 1", "a: 1");
    check(&Format::Yaml, "a: 1", "b: 1", "a: 1\nb: 1\n");
    check(&Format::Yaml, "---\na: 1\r\n", "a: 2", "---\na: 2\n");
    check(&Format::Yaml, "\"a b\": 1\n", "a b: 2", "a b: 2\n");
}

#[test]
fn yaml_keys_that_left_go() {
    check_steps(&Format::Yaml, "a: 1\n", &["b: 2\nc:\n  d: 1\n", "c: 3\n"], "a: 1\nc: 3\n");
}

#[test]
fn yaml_doubts_are_refused() {
    for (target, says) in [
        ("a: 1\n---\nb: 2\n", "several documents"),
        ("{a: 1}\n", "no simple key"),
        ("- a\n", "root is no mapping"),
        ("  a: 1\n", "root is no mapping"),
        ("a: 1\n...\n", "begins or ends"),
        ("ours: &x 1\na: *x\n", "anchor"),
        ("a: &x 1\nours: *x\n", "anchor"),
        ("ours: 1\nours: 2\n", "twice"),
        ("? a\n: b\n", "no simple key"),
    ] {
        check_damaged(&Format::Yaml, target, "ours: 2\n", says);
    }
    check(&Format::Yaml, "a: &x 1\nb: *x\n", "ours: 2\n", "a: &x 1\nb: *x\nours: 2\n");
}

#[test]
fn nothing_but_blanks_is_left_over_of_a_file_that_held_our_part_alone() {
    for (format, fragment) in [
        (block(), "x\n"),
        (Format::Ini, "[a]\nx=1\n"),
        (Format::Toml, "[a.b]\nx = 1\n"),
        (Format::Json, "{\"a\":{\"b\":1}}"),
        (Format::Yaml, "a:\n  b: 1\n"),
    ] {
        let merged = merge(&format, "forge", None, fragment.as_bytes(), &Keys::new()).unwrap();
        let left = withdraw(&format, "forge", &merged.content, &merged.ours).unwrap();
        assert!(is_blank(&format, &left), "{format:?} {:?}", text(&left));
    }
}

fn formats() -> impl Strategy<Value = Format> {
    prop_oneof![Just(block()), Just(Format::Ini), Just(Format::Toml), Just(Format::Json), Just(Format::Yaml)]
}

/// A text of keys `prefix0`, `prefix1` … with these values, in the format.
fn sample(format: &Format, prefix: &str, values: &[u32]) -> String {
    let lines = |line: &dyn Fn(usize, &u32) -> String| -> Vec<String> {
        values.iter().enumerate().map(|(at, value)| line(at, value)).collect()
    };
    match format {
        Format::Block { .. } => lines(&|at, value| format!("{prefix}{at} {value}\n")).concat(),
        Format::Ini => lines(&|at, value| format!("[s{}]\n{prefix}{at}={value}\n", at % 2)).concat(),
        Format::Toml => {
            let all = lines(&|at, value| format!("{prefix}{at} = {value}\n"));
            let (even, odd): (Vec<_>, Vec<_>) = all.into_iter().enumerate().partition(|(at, _)| at % 2 == 0);
            let text =
                |lines: Vec<(usize, String)>| lines.into_iter().map(|(_, line)| line).collect::<String>();
            format!("{}[t]\n{}", text(even), text(odd))
        }
        Format::Json => {
            let members = lines(&|at, value| format!("\"{prefix}{at}\": {{\"in\": {value}}}"));
            format!("{{{}}}", members.join(", "))
        }
        Format::Yaml => lines(&|at, value| format!("{prefix}{at}:\n  - {value}\n\n")).concat(),
    }
}

proptest! {
    #[test]
    fn any_bytes_are_merged_or_refused(
        format in formats(),
        target in prop::collection::vec(any::<u8>(), 0..200),
        fragment in "[ -~\n]{0,120}",
    ) {
        if let Ok(merged) = merge(&format, "m", Some(&target), fragment.as_bytes(), &Keys::new()) {
            let again = merge(&format, "m", Some(&merged.content), fragment.as_bytes(), &merged.ours).unwrap();
            prop_assert_eq!(&again.content, &merged.content);
            let _ = withdraw(&format, "m", &merged.content, &merged.ours).unwrap();
        }
    }

    #[test]
    fn texts_of_the_formats_signs_are_merged_or_refused(
        format in formats(),
        target in "[a-c:=\\[\\]{}\"'#,. \n&*-]{0,60}",
        fragment in "[a-c:=\\[\\]{}\"'#,. \n&*-]{0,40}",
    ) {
        if let Ok(merged) = merge(&format, "m", Some(target.as_bytes()), fragment.as_bytes(), &Keys::new()) {
            let again = merge(&format, "m", Some(&merged.content), fragment.as_bytes(), &merged.ours);
            prop_assert_eq!(&again.unwrap().content, &merged.content);
        }
    }

    #[test]
    fn what_is_put_in_and_taken_out_leaves_the_rest(
        format in formats(),
        theirs in prop::collection::vec(any::<u32>(), 1..6),
        first in prop::collection::vec(any::<u32>(), 1..6),
        second in prop::collection::vec(any::<u32>(), 1..6),
    ) {
        let target = sample(&format, "their", &theirs);
        let one = merge(&format, "m", Some(target.as_bytes()), sample(&format, "our", &first).as_bytes(), &Keys::new()).unwrap();
        let fragment = sample(&format, "our", &second);
        let two = merge(&format, "m", Some(&one.content), fragment.as_bytes(), &one.ours).unwrap();
        for at in second.len()..first.len() {
            let needle = format!("our{at}");
            prop_assert!(!text(&two.content).contains(&needle));
        }
        let left = withdraw(&format, "m", &two.content, &two.ours).unwrap();
        let parsed = |bytes: &[u8]| match format {
            Format::Json => serde_json::from_slice::<serde_json::Value>(bytes).unwrap().to_string(),
            _ => text(bytes).trim_end().to_owned(),
        };
        prop_assert_eq!(parsed(&left), parsed(target.as_bytes()));
    }
}
