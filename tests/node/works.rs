//! The test bed itself: what it starts runs, and its search for secrets finds them.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::support::{Options, Site};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_secret_is_found_wherever_it_may_not_be() {
    let Some(mut site) = Site::start(Options::default()).await else { return };
    site.machines[0].start_engine().await;
    let value = b"a canary of the test bed";
    site.store("own/forge/pw", value);
    site.check_secrets();
    std::fs::write(site.web1().path("own"), value).unwrap();
    site.check_secrets();
    let found = |site: &Site| catch_unwind(AssertUnwindSafe(|| site.check_secrets())).is_err();
    let file = site.at("web1/client.state");
    std::fs::write(&file, hex::encode(value)).unwrap();
    assert!(found(&site), "in a file, in hexadecimal");
    std::fs::remove_file(file).unwrap();
    assert!(!found(&site));
    site.config("web1", "forge", "leak", &format!("\"{}\"", String::from_utf8_lossy(value))).await;
    assert!(found(&site), "in a bucket and on the bus");
}
