//! The file of steps in examples/ does what its comments say.

use super::site::Site;
use crate::support::sample;

#[test]
fn the_example_is_planned_applied_and_taken_back() {
    let Some(site) = Site::new("") else { return };
    let file = sample("../scenarios/web.hcl");
    let (file, records) = (file.to_str().unwrap(), format!("file={}", site.path("records").display()));
    site.run(&["plan", file])
        .ended(0)
        .says(&["2. action.record_create.alias (dns), after action.record_create.www"]);
    site.run(&["apply", file, "--var", &records]).ended(0).says(&["address = \"https://www.example.test/\""]);
    assert!(site.read("records").contains("alias-of-www.example.test.example.test"));
    site.undo().ended(0);
    assert_eq!(site.read("records"), "{}");
}
