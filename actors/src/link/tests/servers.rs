use crate::link::fake::FakeResolver;
use crate::link::{ServerAddress, Servers, SrvTarget, candidates};

fn check_address(text: &str, shown: &str) {
    assert_eq!(ServerAddress::parse(text).unwrap().to_string(), shown);
}

fn check_no_address(text: &str, why: &str) {
    let error = ServerAddress::parse(text).unwrap_err().to_string();
    assert!(error.contains(why), "`{error}` should say `{why}`");
}

#[test]
fn a_bare_host_and_port_is_nats() {
    check_address("broker.example.net:4222", "nats://broker.example.net:4222");
}

#[test]
fn a_missing_port_is_4222() {
    check_address("broker.example.net", "nats://broker.example.net:4222");
}

#[test]
fn tls_may_be_asked_for_by_scheme() {
    let address = ServerAddress::parse("tls://broker.example.net:4223").unwrap();
    assert!(address.wants_tls());
    assert_eq!(address.port(), 4223);
}

#[test]
fn addresses_of_both_families_are_read() {
    check_address(" nats://10.0.0.1:4222 ", "nats://10.0.0.1:4222");
    check_address("nats://[::1]:4222", "nats://[::1]:4222");
    check_address("[::1]:4222", "nats://[::1]:4222");
}

#[test]
fn what_is_no_address_says_why() {
    check_no_address("", "host");
    check_no_address("http://broker.example.net", "scheme");
    check_no_address("nats://user:pass@broker.example.net:4222", "user and password");
    check_no_address("broker.example.net:4222/path", "follows the port");
    check_no_address("broker.example.net:port", "read as");
}

fn list(names: &[&str]) -> Vec<ServerAddress> {
    names.iter().map(|name| ServerAddress::new(*name, 4222)).collect()
}

fn target(host: &str, priority: u16, weight: u16) -> SrvTarget {
    SrvTarget { host: host.to_owned(), port: 4222, priority, weight }
}

fn srv() -> Servers {
    Servers::Srv {
        domain: "example.net".to_owned(),
        services: vec!["_mcollective-server._tcp".to_owned(), "_x-puppet-mcollective._tcp".to_owned()],
        fallback: list(&["puppet"]),
    }
}

fn hosts(addresses: &[ServerAddress]) -> Vec<&str> {
    addresses.iter().map(ServerAddress::host).collect()
}

#[tokio::test]
async fn a_list_is_shuffled_and_holds_no_repeats() {
    let servers = Servers::List(list(&["a", "b", "c", "a"]));
    let mut firsts = std::collections::HashSet::new();
    for _ in 0..200 {
        let found = candidates(&servers, &FakeResolver::default(), &rand::random).await;
        assert_eq!(found.addresses.len(), 3);
        firsts.insert(found.addresses[0].host().to_owned());
    }
    assert_eq!(firsts.len(), 3, "each of them comes first at some time");
}

#[tokio::test]
async fn srv_goes_by_priority_and_then_by_weight() {
    let resolver = FakeResolver::default();
    resolver.set(Some(vec![target("late", 20, 0), target("heavy", 10, 90), target("light", 10, 9)]));
    let mut heavy_first = 0;
    for _ in 0..1000 {
        let found = candidates(&srv(), &resolver, &rand::random).await;
        assert_eq!(found.addresses.last().map(ServerAddress::host), Some("late"));
        heavy_first += usize::from(hosts(&found.addresses)[0] == "heavy");
    }
    assert!((800..1000).contains(&heavy_first), "about nine of ten, but not all: {heavy_first}");
}

#[tokio::test]
async fn without_an_answer_the_fallback_serves_this_round_and_the_trouble_is_named() {
    let resolver = FakeResolver::default();
    let found = candidates(&srv(), &resolver, &rand::random).await;
    assert_eq!(hosts(&found.addresses), ["puppet"]);
    assert!(found.trouble.unwrap().contains("_x-puppet-mcollective._tcp.example.net"));
    resolver.set(Some(vec![target("broker", 0, 0)]));
    let found = candidates(&srv(), &resolver, &rand::random).await;
    assert_eq!((hosts(&found.addresses), found.trouble.clone()), (vec!["broker"], None));
}

#[tokio::test]
async fn a_domain_without_records_says_so() {
    let resolver = FakeResolver::default();
    resolver.set(Some(Vec::new()));
    let found = candidates(&srv(), &resolver, &rand::random).await;
    assert!(found.trouble.unwrap().contains("no SRV records"));
}
