//! The support itself: a broker starts, is looked into, restarts on its port, and is gone when dropped.

use std::net::TcpStream;

use super::support::{Authority, BrokerOptions};

#[test]
fn a_broker_restarts_on_its_port_and_is_gone_when_dropped() {
    let Some(mut broker) = BrokerOptions::new().start() else { return };
    let port = broker.port();
    let first = broker.pid();
    assert_eq!(broker.connections(), 0);
    broker.restart();
    assert_eq!(broker.port(), port);
    assert_ne!(broker.pid(), first);
    drop(broker);
    assert!(TcpStream::connect(("127.0.0.1", port)).is_err());
}

#[test]
fn every_kind_of_broker_starts() {
    let authority = Authority::new("test authority");
    let kinds = [
        BrokerOptions::new().tls(&authority),
        BrokerOptions::new().tls(&authority).allow_plain(),
        BrokerOptions::new().tls(&authority).verify_clients(),
        BrokerOptions::new().user("provisioner", "s3cret").max_payload(65_536),
        BrokerOptions::new().jetstream(),
        BrokerOptions::new().extra("accounts { A { users: [ { user: a, password: a } ] } }"),
    ];
    for options in kinds {
        let Some(broker) = options.start() else { return };
        assert_eq!(broker.connections(), 0);
        broker.freeze();
        broker.thaw();
    }
}
