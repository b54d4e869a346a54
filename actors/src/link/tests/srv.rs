//! The real resolver against a name server of the test's own.

use std::net::{Ipv4Addr, SocketAddr};

use hickory_resolver::proto::op::{Message, ResponseCode};
use hickory_resolver::proto::rr::rdata::SRV;
use hickory_resolver::proto::rr::{Name, RData, Record};
use tokio::net::UdpSocket;

use crate::link::{SrvResolver, SrvTarget, SystemResolver};

/// A name server that knows `_known._tcp.example.net` and says of everything else that it does not exist.
async fn name_server() -> SocketAddr {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = socket.local_addr().unwrap();
    tokio::spawn(async move {
        let mut buffer = [0_u8; 4096];
        loop {
            let (length, from) = socket.recv_from(&mut buffer).await.unwrap();
            let mut answer = Message::from_vec(&buffer[..length]).unwrap().into_response();
            let name = answer.queries[0].name().clone();
            if name.to_lowercase().to_utf8() == "_known._tcp.example.net." {
                for (priority, host) in
                    [(10, "broker1.example.net."), (20, "broker2.example.net."), (30, ".")]
                {
                    let srv = SRV::new(priority, 5, 4223, Name::from_utf8(host).unwrap());
                    answer.add_answer(Record::from_rdata(name.clone(), 60, RData::SRV(srv)));
                }
            } else {
                answer.metadata.response_code = ResponseCode::NXDomain;
            }
            socket.send_to(&answer.to_vec().unwrap(), from).await.unwrap();
        }
    });
    address
}

fn target(host: &str, priority: u16) -> SrvTarget {
    SrvTarget { host: host.to_owned(), port: 4223, priority, weight: 5 }
}

#[tokio::test]
async fn records_are_read_without_their_final_dots_and_without_the_one_that_says_no() {
    let resolver = SystemResolver::asking(name_server().await);
    let mut found = resolver.srv("_known._tcp.example.net".to_owned()).await.unwrap();
    found.sort_by_key(|target| target.priority);
    assert_eq!(found, [target("broker1.example.net", 10), target("broker2.example.net", 20)]);
}

#[tokio::test]
async fn a_name_that_does_not_exist_has_no_records() {
    let resolver = SystemResolver::asking(name_server().await);
    assert_eq!(resolver.srv("_unknown._tcp.example.net".to_owned()).await.unwrap(), []);
}

#[tokio::test]
async fn a_name_server_that_is_not_there_is_an_error_that_names_the_question() {
    let nobody = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap().local_addr().unwrap();
    let error = SystemResolver::asking(nobody).srv("_known._tcp.example.net".to_owned()).await.unwrap_err();
    assert!(error.to_string().contains("_known._tcp.example.net"), "{error}");
}
