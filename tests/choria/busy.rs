//! Servers that are not to be had: somebody else is busy with them, or they do not come back.
use std::time::Duration;

use serde_json::json;

use super::endings::settings;
use super::support::lab::lab;
use super::support::network::{Kind, Network};
use super::support::provisioner::Provisioner;
use super::support::site::Site;

/// Nobody can take the lock back from whoever has it: a server forgets after two minutes. That makes this the longest of
/// the tests; it stands in the first module by name so that the others run beside it.
#[test]
fn a_stranger_with_a_lock_and_a_server_that_never_returns_delay_nobody_else() {
    let Some(lab) = lab() else { return };
    let (locked, free, lost) = ("web1.example.net", "web2.example.net", "lost.example.net");
    let mut network = Network::prepare(lab, Kind::Plain, &[locked, free, lost]);
    let site = Site::open(network.path());
    for name in [locked, free, lost] {
        site.answer(name, &json!({"configuration": settings(&network, name)}));
        network.start_server(name);
    }
    let answer = network.lab("stranger", locked);
    assert!(
        answer.contains("Incorrect provision token supplied"),
        "the stranger needs no token for the lock: {answer}"
    );

    let mut provisioner = Provisioner::start(&network);
    network.tap().answer(lost, "restart", 1);
    network.cut_power(lost);
    network.tap().startup(free, "server", 1);
    provisioner.says(&[locked, "holds the lock"]);
    assert!(site.received(locked).is_empty(), "a helper run was wasted on a server that is busy");

    // Said about a minute later, while the other one is still locked.
    provisioner.says(&[lost, "Not seen as a server after its restart"]);

    network.tap().within(Duration::from_secs(230), "the locked server to be provisioned", 1, |h| {
        h.subject == "choria.lifecycle.event.startup.server" && h.data.contains(locked)
    });
    assert_eq!(site.received(locked).len(), 1, "calls of the helper about the locked server");
    let asked = network.tap().requests(locked, "jwt");
    let ours = asked.iter().filter(|h| h.sender == "provisioner.example.net").count();
    assert!(ours <= 8, "the provisioner asked the busy server {ours} times");
    provisioner.stop();
}
