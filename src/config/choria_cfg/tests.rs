use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::Path;
use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::config::fault::Faults;
use crate::config::surroundings::{Names, Surroundings};

struct Nameless;

impl Names for Nameless {
    fn hostname(&self) -> String {
        "prov".to_owned()
    }
    fn full_name(&self) -> Option<String> {
        None
    }
    fn domain(&self) -> Option<String> {
        None
    }
}

/// Reads the files of `tree` (path → text), the main one being `etc/client.cfg`, from inside `cwd`.
fn read_tree(tree: &[(&str, &str)], env: &[(&str, &str)], cwd: &str) -> (ChoriaCfg, Faults) {
    let root = tempfile::tempdir().unwrap();
    for (path, text) in tree {
        let path = root.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    std::fs::create_dir_all(root.path().join(cwd)).unwrap();
    let inside = |value: &str| value.replace("ROOT", root.path().to_str().unwrap());
    let env: BTreeMap<String, String> = env.iter().map(|(k, v)| ((*k).to_owned(), inside(v))).collect();
    let around = Surroundings {
        env: &env,
        names: &Nameless,
        cwd: root.path().join(cwd),
        is_root: false,
        cpus: NonZeroUsize::MIN,
    };
    let mut faults = Faults::default();
    let cfg = read(&root.path().join("etc/client.cfg"), &around, &mut faults).unwrap();
    (cfg, faults)
}

fn read_text(text: &str) -> (ChoriaCfg, Faults) {
    read_tree(&[("etc/client.cfg", text)], &[("HOME", "/home/prov")], "work")
}

fn complains(text: &str, line: usize, words: &str) {
    let (_, faults) = read_text(text);
    let [fault] = faults.list() else { panic!("{text}: {:?}", faults.list()) };
    let all = format!("{} | {}", fault.what, fault.help.clone().unwrap_or_default());
    assert!(all.contains(words) && fault.place.unwrap().line == line, "{fault:?}");
}

fn items(text: &str) -> Vec<(&str, &str)> {
    parse_lines(text)
        .filter_map(|line| match line {
            Line::Item { key, value, .. } => Some((key, value)),
            Line::Junk { .. } => None,
        })
        .collect()
}

#[rustfmt::skip]
mod lines {
    use super::*;
    #[test] fn spaces_around_the_sign_are_optional() { assert_eq!(items("a=1\nb = 2\n  c\t=\t3 "), [("a", "1"), ("b", "2"), ("c", "3")]) }
    #[test] fn the_first_sign_separates() { assert_eq!(items("a = b = c"), [("a", "b = c")]); assert_eq!(items("a==b"), [("a", "=b")]) }
    #[test] fn a_key_has_a_character_even_if_it_is_the_sign() { assert_eq!(items("=a=b"), [("=a", "b")]); assert_eq!(items("= b"), []) }
    #[test] fn comments_stand_alone() { assert_eq!(items("# a = 1\na = 1 # no comment"), [("a", "1 # no comment")]) }
    #[test] fn quotes_are_kept() { assert_eq!(items("a = \"x\""), [("a", "\"x\"")]) }
    #[test] fn lines_that_do_not_match_are_no_items() { assert_eq!(items("a\na =\n\n\r\nb=1\r\n"), [("b", "1")]) }
}

#[test]
fn places_count_characters_and_bytes() {
    let Some(Line::Item { place, value_place, .. }) = parse_lines("# x\n  é = w\n").next() else { panic!() };
    assert_eq!((place.line, place.column, place.offset), (2, 3, 6));
    assert_eq!((value_place.column, value_place.offset, value_place.length), (7, 11, 1));
}

#[test]
fn booleans_are_what_the_peer_says() {
    for yes in ["1", "yes", "TRUE", "y", "T"] {
        assert_eq!(parse_bool(yes), Some(true), "{yes}");
    }
    for no in ["0", "No", "false", "N", "f"] {
        assert_eq!(parse_bool(no), Some(false), "{no}");
    }
    assert_eq!(parse_bool("on"), None);
    assert!(!is_yes("on"));
}

#[test]
fn typed_values_are_parsed() {
    let (cfg, faults) = read_text(
        "identity = p.example.net\nttl = 90\nplugin.choria.use_srv = n\n\
         plugin.choria.network.connect_timeout = 1m\nplugin.choria.middleware_hosts = a:1 , b:2\n\
         plugin.security.file.certificate = ~/ssl/c.pem\n",
    );
    assert!(faults.list().is_empty(), "{:?}", faults.list());
    assert_eq!(cfg.text("identity"), Some("p.example.net"));
    assert_eq!(cfg.int("ttl"), Some(90));
    assert_eq!(cfg.boolean("plugin.choria.use_srv"), Some(false));
    assert_eq!(cfg.duration("plugin.choria.network.connect_timeout"), Some(Duration::from_mins(1)));
    assert_eq!(cfg.list("plugin.choria.middleware_hosts"), ["a:1", "b:2"]);
    assert_eq!(cfg.text("plugin.security.file.certificate"), Some("/home/prov/ssl/c.pem"));
}

#[test]
fn later_lines_win_and_lists_are_replaced() {
    let (cfg, _) = read_text(
        "identity = a\nidentity = b\nplugin.choria.middleware_hosts = a:1,b:2\nplugin.choria.middleware_hosts = c:3\n",
    );
    assert_eq!(cfg.text("identity"), Some("b"));
    assert_eq!(cfg.list("plugin.choria.middleware_hosts"), ["c:3"]);
}

#[test]
fn nonsense_keeps_what_was_there_except_for_booleans() {
    let (cfg, faults) = read_text(
        "ttl = 90\nttl = soon\nplugin.choria.network.connect_timeout = 5\nplugin.choria.network.connect_timeout = x\nplugin.choria.use_srv = yes\nplugin.choria.use_srv = maybe\n",
    );
    assert_eq!(cfg.int("ttl"), Some(90));
    assert_eq!(cfg.duration("plugin.choria.network.connect_timeout"), Some(Duration::from_secs(5)));
    assert_eq!(cfg.boolean("plugin.choria.use_srv"), Some(false));
    let lines: Vec<_> = faults.list().iter().map(|fault| fault.place.unwrap().line).collect();
    assert_eq!(lines, [2, 4, 6]);
}

#[test]
fn unknown_keys_are_kept_as_text() {
    let (cfg, faults) = read_text("plugin.security.issuer.choria.public = abc\nmain_collective = x\n");
    assert_eq!(cfg.option("plugin.security.issuer.choria.public"), Some("abc"));
    assert_eq!(cfg.option("main_collective"), Some("x"));
    assert!(faults.list().is_empty(), "{:?}", faults.list());
}

#[rustfmt::skip]
mod complaints {
    use super::*;
    #[test] fn a_line_without_a_sign() { complains("ttl = 60\nwhatever\n", 2, "ignored") }
    #[test] fn a_key_without_a_value() { complains("identity =\n", 1, "no value") }
    #[test] fn a_misspelt_key() { complains("plugin.choria.middleware_host = a:1\n", 1, "`plugin.choria.middleware_hosts`") }
    #[test] fn quotes() { complains("identity = \"a.b\"\n", 1, "quotes are part") }
}

#[test]
fn plugin_files_prefix_their_keys_and_only_choria_cfg_is_typed() {
    let (cfg, faults) = read_tree(
        &[
            ("etc/client.cfg", "plugin.choria.use_srv = true\nplugin.nats.user = main\n"),
            ("etc/plugin.d/choria.cfg", "use_srv = false\n"),
            ("etc/plugin.d/nats.cfg", "user = plugin\n"),
            ("etc/plugin.d/readme.txt", "x = y\n"),
        ],
        &[],
        "work",
    );
    assert!(faults.list().is_empty(), "{:?}", faults.list());
    assert_eq!(cfg.boolean("plugin.choria.use_srv"), Some(false));
    assert_eq!(cfg.text("plugin.nats.user"), Some("main"), "other plugin files do not feed typed settings");
    assert_eq!(cfg.option("plugin.nats.user"), Some("plugin"));
    assert_eq!(cfg.option("plugin.readme.x"), None);
}

#[test]
fn a_conf_file_stands_for_the_cfg_of_its_name() {
    let (cfg, faults) = read_tree(
        &[
            ("etc/client.cfg", "ttl = 60\n"),
            ("etc/plugin.d/a.conf", "x = conf\n"),
            ("etc/plugin.d/b.conf", "x = conf\n"),
            ("etc/plugin.d/b.cfg", "x = cfg\n"),
        ],
        &[],
        "work",
    );
    assert_eq!((cfg.option("plugin.a.x"), cfg.option("plugin.b.x")), (None, Some("cfg")));
    assert!(
        faults.list().iter().any(|f| f.file.as_deref().unwrap().ends_with("a.conf")),
        "{:?}",
        faults.list()
    );
}

#[test]
fn plugin_files_are_skipped_below_the_home_folder() {
    let tree = [("etc/client.cfg", "ttl = 60\n"), ("etc/plugin.d/choria.cfg", "use_srv = false\n")];
    let (cfg, faults) = read_tree(&tree, &[("HOME", "ROOT")], "work");
    assert_eq!(cfg.boolean("plugin.choria.use_srv"), None);
    assert!(faults.list()[0].what.contains("home folder"));
}

#[test]
fn project_files_override_nearest_last() {
    let tree = [
        ("etc/client.cfg", "identity = main\nttl = 60\n"),
        ("choria.conf", "identity = far\nttl = 70\n"),
        ("work/site/choria.conf", "identity = near\n"),
        ("work/other/choria.conf", "identity = other\n"),
    ];
    let (cfg, _) = read_tree(&tree, &[], "work/site");
    assert_eq!((cfg.text("identity"), cfg.int("ttl")), (Some("near"), Some(70)));
}

#[test]
fn the_environment_overrides_only_keys_that_a_file_has() {
    let env = [("MCOLLECTIVE_NATS_USERNAME", "envuser"), ("MCOLLECTIVE_NATS_PASSWORD", "envpass")];
    let (cfg, faults) = read_tree(&[("etc/client.cfg", "plugin.nats.user = fileuser\n")], &env, "work");
    assert_eq!((cfg.text("plugin.nats.user"), cfg.text("plugin.nats.pass")), (Some("envuser"), None));
    assert!(faults.list().is_empty());
}

#[test]
fn a_missing_main_file_is_an_error() {
    let env = BTreeMap::new();
    let around = Surroundings {
        env: &env,
        names: &Nameless,
        cwd: "/".into(),
        is_root: false,
        cpus: NonZeroUsize::MIN,
    };
    let mut faults = Faults::default();
    assert!(read(Path::new("no/such.cfg"), &around, &mut faults).is_none());
    assert_eq!(faults.list()[0].file.as_deref(), Some(Path::new("/no/such.cfg")));
    assert!(!faults.may_start());
}

#[test]
fn the_default_file_is_the_users_first() {
    let root = tempfile::tempdir().unwrap();
    let env = BTreeMap::from([("HOME".to_owned(), root.path().to_str().unwrap().to_owned())]);
    let around = Surroundings {
        env: &env,
        names: &Nameless,
        cwd: "/".into(),
        is_root: false,
        cpus: NonZeroUsize::MIN,
    };
    std::fs::write(root.path().join(".mcollective"), "").unwrap();
    assert_eq!(default_path(&around), root.path().join(".mcollective"));
    std::fs::write(root.path().join(".choriarc"), "").unwrap();
    assert_eq!(default_path(&around), root.path().join(".choriarc"));
}

#[test]
fn passwords_are_shown_by_neither_debug_nor_text() {
    let (cfg, faults) = read_text("plugin.nats.pass = s3cret\n");
    assert!(!format!("{cfg:?}").contains("s3cret"));
    assert!(!format!("{faults:?}").contains("s3cret"));
}

proptest! {
    #[test]
    fn any_text_is_read_without_panic_and_places_lie_on_it(text in "[a-c= #\t\r\né\"]{0,60}") {
        for line in parse_lines(&text) {
            if let Line::Item { key, value, place, value_place } = line {
                prop_assert!(!key.is_empty() && !value.is_empty());
                prop_assert_eq!(text.get(place.offset..place.offset + place.length), Some(key));
                prop_assert_eq!(text.get(value_place.offset..value_place.offset + value_place.length), Some(value));
            }
        }
    }

    #[test]
    fn what_is_written_is_read(pairs in proptest::collection::vec(("[a-z][a-z.]{0,8}", "[!-~]([ -~]{0,8}[!-~])?"), 0..6)) {
        let lines: Vec<String> = pairs.iter().map(|(key, value)| format!("{key} = {value}\n")).collect();
        let text = lines.concat();
        let expected: Vec<(&str, &str)> = pairs.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        prop_assert_eq!(items(&text), expected);
    }
}
