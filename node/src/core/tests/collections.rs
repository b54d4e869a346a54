use std::{collections::BTreeMap, sync::Arc};

use quartermaster_proto::mesh::report::{Action, Why};

use super::{super::*, drive::Drive, life::FILE};
use crate::check::Want;

fn items(items: &[(&str, &str)]) -> Found {
    let items: BTreeMap<String, String> =
        items.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
    Found::Here(Stored::Items(Arc::new(items)))
}

#[test]
fn a_collector_is_filled_again_whenever_an_item_comes_or_goes() {
    let mut drive = Drive::new();
    drive.assign(1, &format!(r##"{FILE},"collections":[{{"collection":"shell:zsh","comment":"#"}}]"##));
    drive.archive(&[("a", "${shell:zsh}|${collected:shell:zsh}")]);
    let want = Want::Collection("shell:zsh".to_owned());
    drive.found(want.clone(), Found::Missing(Why::NotLoaded));
    drive.settle();
    assert_eq!(drive.said(), "waiting collected shell:zsh not-loaded", "not empty before it is known");
    drive.found(want.clone(), items(&[]));
    drive.settle();
    assert_eq!(drive.sent()[0].1, "|");
    drive.engine_does(Action::Written);
    drive.found(want.clone(), items(&[("b", "2"), ("a", "1\n")]));
    drive.settle();
    assert_eq!(drive.sent()[0].1, "# a\n1\n# b\n2\n|# a\n1\n# b\n2\n");
    drive.engine_does(Action::Written);
    drive.found(want, items(&[("a", "1\n")]));
    drive.settle();
    assert_eq!(drive.sent()[0].1, "# a\n1\n|# a\n1\n");
}

#[test]
fn an_item_is_recorded_when_its_own_values_are_there() {
    let mut drive = Drive::new();
    drive.assign(1, &format!(r#"{FILE},"items":[{{"collection":"c","template":"i"}}]"#));
    drive.archive(&[("a", "${config:file}"), ("i", "x=${config:item}")]);
    drive.no_config("file");
    drive.config("item", "1");
    drive.settle();
    assert_eq!(drive.items["c"], "x=1", "whatever the files wait for");
    drive.config("item", "2");
    drive.settle();
    assert_eq!(drive.items["c"], "x=2");
    drive.no_config("item");
    drive.settle();
    assert_eq!(drive.items["c"], "x=2", "left as it is while a value is missing");
}

#[test]
fn an_item_that_names_a_secret_fails_the_module_and_nothing_is_recorded() {
    let mut drive = Drive::new();
    drive.assign(1, &format!(r#"{FILE},"items":[{{"collection":"c","template":"i"}}]"#));
    drive.archive(&[("a", "x"), ("i", "fine")]);
    drive.settle();
    assert_eq!(drive.items.len(), 1);
    drive.engine_does(Action::Written);
    drive.other_archive();
    let secrets = r#""secrets":[{"name":"pw"}]"#;
    drive.assign(2, &format!(r#"{FILE},{secrets},"items":[{{"collection":"c","template":"i"}}]"#));
    let writes = drive.writes.len();
    drive.archive(&[("a", "x"), ("i", "${secret:pw}")]);
    drive.settle();
    assert_eq!(
        drive.said(),
        "failed template `i`, line 1: secret pw: an item is kept in a bucket, and no secret is"
    );
    assert!(drive.items.is_empty());
    assert_eq!(drive.writes.len(), writes);
}
