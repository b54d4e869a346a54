//! The key-value store as the vault meets it: a small one that answers as recorded, HashiCorp Vault's own core with `QM_KV_LAB=1`, and
//! one that is named with `QM_KV_ADDRESS` and `QM_KV_TOKEN`.

#![cfg(test)]

use std::{fs, path::PathBuf, time::Duration};

use quartermaster_node::vault::{
    Value,
    kv::{KvAuth, KvClient, KvError, KvSettings, Read, Stored},
};
use serde_json::json;
use support::{
    kv::{FakeKv, ROLE, SECRET_ID, TOKEN, private},
    kv_lab::{KvLab, MOUNT},
    web::fixture,
};
use zeroize::Zeroizing;

mod support;

const NAME: &str = "own/forge/pw";

fn value(bytes: &[u8]) -> Value {
    Value::new(Zeroizing::new(bytes.to_vec()))
}

fn found(read: Result<Read, KvError>) -> (Vec<u8>, u64) {
    match read {
        Ok(Read::Found { value, mark }) => (value.expose().to_vec(), mark.version),
        other => panic!("{other:?}"),
    }
}

/// What every store of the kind does.
async fn contract(settings: KvSettings) {
    let kv = KvClient::new(settings).unwrap();
    assert_eq!(kv.names("own").await, Ok(Vec::new()));
    assert_eq!(kv.read(NAME).await, Ok(Read::Absent { last: 0 }));
    assert_eq!(kv.stored(NAME).await, Ok(Stored { last: 0, mark: None }));
    let first = kv.write(NAME, &value(b"one \"\n"), 0).await.unwrap();
    assert_eq!(found(kv.read(NAME).await), (b"one \"\n".to_vec(), 1));
    assert_eq!(kv.write(NAME, &value(b"two"), 0).await, Err(KvError::Raced));
    let second = kv.write(NAME, &value(b"\0\xff"), 1).await.unwrap();
    assert_eq!(found(kv.read(NAME).await), (b"\0\xff".to_vec(), 2));
    assert_eq!((first.version, second.version), (1, 2));
    assert_eq!(kv.stored(NAME).await, Ok(Stored { last: 2, mark: Some(second.clone()) }));
    kv.write("own/forge/pw/web1 é%.example", &value(b""), 0).await.unwrap();
    assert_eq!(found(kv.read("own/forge/pw/web1 é%.example").await), (Vec::new(), 1));
    assert_eq!(kv.names("own").await.unwrap(), ["forge/"]);
    assert_eq!(kv.names("own/forge").await.unwrap(), ["pw", "pw/"]);
    assert_eq!(kv.names("own/forge/pw").await.unwrap(), ["web1 é%.example"]);
    kv.forget(NAME).await.unwrap();
    assert_eq!(kv.read(NAME).await, Ok(Read::Absent { last: 0 }));
    let anew = kv.write(NAME, &value(b"anew"), 0).await.unwrap();
    assert_eq!(anew.version, 1);
    assert!(anew.created > second.created);
    assert!(matches!(kv.read("own/forge/..").await, Err(KvError::Refused(_))));
    kv.forget("own/forge/pw").await.unwrap();
    kv.forget("own/forge/pw/web1 é%.example").await.unwrap();
    assert_eq!(kv.names("own").await, Ok(Vec::new()));
    let elsewhere = KvSettings { mount: "nowhere".to_owned(), ..kv.settings().clone() };
    let elsewhere = KvClient::new(elsewhere).unwrap();
    let read = elsewhere.read(NAME).await;
    assert!(
        matches!(read, Err(KvError::Silent(_) | KvError::Refused(_))),
        "a mount that is not there is no sign: {read:?}"
    );
    let folder = tempfile::tempdir().unwrap();
    let auth = KvAuth::Token { file: private(folder.path(), "token", "hvs.not-known") };
    let stranger = KvClient::new(KvSettings { auth, ..kv.settings().clone() }).unwrap();
    assert!(matches!(stranger.read(NAME).await, Err(KvError::Silent(_))));
}

#[tokio::test]
async fn the_recorded_store_does_what_a_store_does() {
    let (fake, folder) = (FakeKv::start(false), tempfile::tempdir().unwrap());
    contract(fake.settings(folder.path())).await;
}

/// For instance `bao server -dev -dev-root-token-id=TOKEN`, with nothing of ours in it.
#[tokio::test]
async fn a_real_store_does_what_a_store_does() {
    let named = |name| std::env::var(name).ok();
    let (Some(address), Some(token)) = (named("QM_KV_ADDRESS"), named("QM_KV_TOKEN")) else {
        eprintln!("SKIPPED: QM_KV_ADDRESS and QM_KV_TOKEN name no real key-value store");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let auth = KvAuth::Token { file: private(folder.path(), "token", &token) };
    contract(KvSettings::new(address, "secret".to_owned(), auth)).await;
}

/// With a token of the policy that docs/node.md names, then by `AppRole`, then over TLS.
#[tokio::test]
async fn hashicorp_vault_does_what_a_store_does() {
    let Some(lab) = KvLab::start(&[fixture("server.pem"), fixture("server.key")]) else { return };
    let folder = tempfile::tempdir().unwrap();
    let token = KvAuth::Token { file: private(folder.path(), "token", &lab.token("1h")) };
    contract(KvSettings::new(lab.address.clone(), MOUNT.to_owned(), token.clone())).await;
    let secret = private(folder.path(), "secret-id", &lab.secret_id_of("1h"));
    contract(KvSettings::new(lab.address.clone(), MOUNT.to_owned(), role(&lab, "1h", secret))).await;
    let tls = KvSettings::new(lab.tls.clone().unwrap(), MOUNT.to_owned(), token);
    contract(KvSettings { ca: Some(fixture("ca.pem")), ..tls }).await;
}

fn role(lab: &KvLab, life: &str, secret: PathBuf) -> KvAuth {
    KvAuth::AppRole { mount: "approle".to_owned(), role: lab.role(life), secret }
}

/// A value that is there is never taken for absent, nor the vault for refused, whenever the store is sealed between two requests or
/// in the middle of one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hashicorp_vault_that_is_sealed_in_use_is_silent_and_heals() {
    let Some(lab) = KvLab::start(&[]) else { return };
    let folder = tempfile::tempdir().unwrap();
    lab.write(NAME, "kept");
    let token = KvAuth::Token { file: private(folder.path(), "token", &lab.token("1h")) };
    let secret = private(folder.path(), "secret-id", &lab.secret_id_of("1h"));
    for auth in [token, role(&lab, "1h", secret)] {
        let kv = KvClient::new(KvSettings::new(lab.address.clone(), MOUNT.to_owned(), auth)).unwrap();
        found(kv.read(NAME).await);
        let (stop, stopped) = tokio::sync::watch::channel(false);
        let readers = (0..8).map(|_| {
            let (kv, stopped) = (kv.clone(), stopped.clone());
            tokio::spawn(async move {
                let mut silent = 0;
                while !*stopped.borrow() {
                    match (kv.read(NAME).await, kv.stored(NAME).await, kv.names("own").await) {
                        (Ok(Read::Absent { .. }) | Err(KvError::Refused(_)), ..)
                        | (_, Ok(Stored { mark: None, .. }) | Err(KvError::Refused(_)), _)
                        | (.., Err(KvError::Refused(_))) => panic!("a sealed store says nothing of a name"),
                        (.., Ok(names)) if names != ["forge/"] => panic!("{names:?}"),
                        (read, ..) => silent += usize::from(read.is_err()),
                    }
                }
                silent
            })
        });
        let readers: Vec<_> = readers.collect();
        for _ in 0..10 {
            lab.seal();
            assert!(matches!(kv.read(NAME).await, Err(KvError::Silent(why)) if why.contains("sealed")));
            lab.unseal();
            while kv.read(NAME).await.is_err() {}
        }
        stop.send_replace(true);
        let mut silent = 0;
        for reader in readers {
            silent += reader.await.unwrap();
        }
        assert!(silent > 0, "nobody met it sealed");
        found(kv.read(NAME).await);
    }
}

/// A token that has ended, by its time or by somebody's hand, is no refusal of a name; another one in its file serves.
#[tokio::test]
async fn hashicorp_vault_s_tokens_that_end_are_had_anew() {
    let Some(lab) = KvLab::start(&[]) else { return };
    let folder = tempfile::tempdir().unwrap();
    lab.write(NAME, "kept");
    let token = lab.token("1h");
    let file = private(folder.path(), "token", &token);
    let auth = KvAuth::Token { file };
    let kv = KvClient::new(KvSettings::new(lab.address.clone(), MOUNT.to_owned(), auth)).unwrap();
    found(kv.read(NAME).await);
    lab.revoke(&token);
    for _ in 0..2 {
        let read = kv.read(NAME).await;
        assert!(matches!(&read, Err(KvError::Silent(why)) if why.contains("token")), "{read:?}");
    }
    // One that lives for two seconds and cannot live longer.
    private(folder.path(), "token", &lab.token("2s"));
    found(kv.read(NAME).await);
    tokio::time::sleep(Duration::from_millis(2500)).await;
    let read = kv.read(NAME).await;
    assert!(matches!(read, Err(KvError::Silent(_))), "{read:?}");
    private(folder.path(), "token", &lab.token("1h"));
    found(kv.read(NAME).await);

    // Logins of two seconds are made anew before and after their end, and after somebody ended them.
    let secret_id = lab.secret_id_of("2s");
    let secret = private(folder.path(), "secret-id", &secret_id);
    let auth = role(&lab, "2s", secret);
    let kv = KvClient::new(KvSettings::new(lab.address.clone(), MOUNT.to_owned(), auth)).unwrap();
    let end = tokio::time::Instant::now() + Duration::from_secs(5);
    while tokio::time::Instant::now() < end {
        found(kv.read(NAME).await);
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    tokio::time::sleep(Duration::from_millis(2500)).await;
    found(kv.read(NAME).await);
    lab.revoke_logins();
    found(kv.read(NAME).await);
    lab.destroy(&secret_id);
    lab.revoke_logins();
    let read = kv.read(NAME).await;
    assert!(matches!(&read, Err(KvError::Silent(why)) if why.contains("login")), "{read:?}");
    private(folder.path(), "secret-id", &lab.secret_id());
    found(kv.read(NAME).await);
}

#[tokio::test]
async fn a_login_is_made_once_and_again_when_its_token_has_ended() {
    let (fake, folder) = (FakeKv::start(false), tempfile::tempdir().unwrap());
    fake.with(|state| state.write(NAME, json!({ "value": "x" })));
    let auth = KvAuth::AppRole {
        mount: "approle".to_owned(),
        role: ROLE.to_owned(),
        secret: private(folder.path(), "secret-id", &format!("{SECRET_ID}\n")),
    };
    let kv = KvClient::new(KvSettings { auth, ..fake.settings(folder.path()) }).unwrap();
    for _ in 0..3 {
        found(kv.read(NAME).await);
    }
    assert_eq!(fake.with(|state| state.logins), 1);
    fake.with(|state| state.tokens = vec!["hvs.another".to_owned()]);
    found(kv.read(NAME).await);
    assert_eq!(fake.with(|state| state.logins), 2);
    fake.with(|state| state.is_forbidden.push(NAME.to_owned()));
    assert!(matches!(kv.read(NAME).await, Err(KvError::Refused(_))), "a name that is not granted is refused");
    private(folder.path(), "secret-id", "wrong");
    fake.with(|state| state.tokens = vec!["hvs.third".to_owned()]);
    assert!(
        matches!(kv.read(NAME).await, Err(KvError::Silent(_))),
        "a login that fails is no refusal of the name"
    );
}

#[tokio::test]
async fn a_token_is_renewed_while_it_lives_and_read_anew_from_its_file() {
    let (fake, folder) = (FakeKv::start(false), tempfile::tempdir().unwrap());
    fake.with(|state| {
        state.write(NAME, json!({ "value": "x" }));
        state.token_life = 60;
    });
    let kv = KvClient::new(fake.settings(folder.path())).unwrap();
    found(kv.read(NAME).await);
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(41)).await;
    tokio::time::resume();
    found(kv.read(NAME).await);
    assert_eq!(fake.with(|state| (state.logins, state.renewals)), (1, 1));
    private(folder.path(), "kv-token", "hvs.new\n");
    fake.with(|state| state.tokens = vec!["hvs.new".to_owned()]);
    found(kv.read(NAME).await);
    assert_eq!(fake.with(|state| state.logins), 2);
    assert_ne!(TOKEN, "hvs.new");
}

#[tokio::test]
async fn a_store_is_believed_only_with_its_certificate() {
    let (fake, folder) = (FakeKv::start(true), tempfile::tempdir().unwrap());
    contract(fake.tls_settings(folder.path())).await;
    let unknown = KvSettings { ca: None, ..fake.tls_settings(folder.path()) };
    let read = KvClient::new(unknown).unwrap().read(NAME).await;
    assert!(matches!(&read, Err(KvError::Silent(why)) if why.contains("certificate")), "{read:?}");
    let port = fake.web.address.port();
    let other_name =
        KvSettings { address: format!("https://127.0.0.2:{port}"), ..fake.tls_settings(folder.path()) };
    let read = KvClient::new(other_name).unwrap().read(NAME).await;
    assert!(matches!(read, Err(KvError::Silent(_))), "{read:?}");
    fs::write(folder.path().join("none.pem"), "no certificate").unwrap();
    let none = KvSettings { ca: Some(folder.path().join("none.pem")), ..fake.tls_settings(folder.path()) };
    assert!(KvClient::new(none).is_err());
}
