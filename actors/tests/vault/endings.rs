//! A vault that is full, panics, stops, hangs or blocks.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use quartermaster_actors::supervise::{Ending, Force, Overseer, OverseerSettings, release_blocked_threads};
use quartermaster_actors::vault::{
    NoRandomness, Outside, VaultError, VaultHandle, VaultKeeper, VaultSettings,
};
use quartermaster_proto::choria::ecdh::KeyPair;
use secrecy::SecretString;

use crate::site::{RSA, Site, chain, outside};

async fn seal(vault: &VaultHandle) -> Result<(), VaultError> {
    let host = KeyPair::generate([9; 32]).public_hex();
    vault.seal_private_key(SecretString::from(RSA[1].serialize_pem()), host).await.map(drop)
}

fn narrow(threads: usize, queue: usize) -> VaultSettings {
    let mut settings = Site::new().plain();
    settings.threads = threads.try_into().unwrap();
    settings.queue = queue.try_into().unwrap();
    settings
}

#[actix::test]
async fn a_full_vault_refuses_at_once_and_takes_work_again_afterwards() {
    let (entered, arrivals) = mpsc::channel();
    let (release, released) = mpsc::channel::<()>();
    let released = std::sync::Mutex::new(released);
    let blocking = outside().with_random(move |_| {
        let _ = entered.send(());
        // Ends when the test lets go of the other side.
        let _ = released.lock().unwrap().recv();
        Ok(())
    });
    let vault = VaultKeeper::start_alone(narrow(1, 2), blocking);
    let waiting: Vec<_> = (0..2)
        .map(|_| {
            let vault = vault.clone();
            actix_rt::spawn(async move { seal(&vault).await })
        })
        .collect();
    tokio::task::spawn_blocking(move || arrivals.recv().unwrap()).await.unwrap();
    tokio::task::yield_now().await;
    let refused = vault.provisioning_token().await.unwrap_err();
    assert!(matches!(&refused, VaultError::Unanswered(_) | VaultError::Busy { queue: 2 }), "{refused}");
    assert!(chain(&refused).contains("too many requests wait for vault"), "{}", chain(&refused));
    assert!(!refused.is_final());
    drop(release);
    for work in waiting {
        work.await.unwrap().unwrap();
    }
    assert!(vault.provisioning_token().await.is_ok());
}

#[actix::test]
async fn a_panic_costs_the_one_request_and_no_thread() {
    let healed = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&healed);
    let faulty = outside().with_random(move |bytes| {
        assert!(seen.load(Ordering::Relaxed), "a fault in the vault");
        bytes.fill(4);
        Ok(())
    });
    let vault = VaultKeeper::start_alone(narrow(1, 8), faulty);
    for _ in 0..3 {
        assert!(matches!(seal(&vault).await, Err(VaultError::Panicked)));
    }
    healed.store(true, Ordering::Relaxed);
    assert!(seal(&vault).await.is_ok());
}

#[actix::test]
async fn without_randomness_nothing_is_sealed() {
    let vault = VaultKeeper::start_alone(narrow(1, 8), outside().with_random(|_| Err(NoRandomness)));
    assert!(matches!(seal(&vault).await, Err(VaultError::Randomness(NoRandomness))));
}

#[actix::test]
async fn without_an_owner_that_puts_a_vault_there_the_answer_comes_at_once() {
    let (handle, _owned) = VaultKeeper::owned(narrow(1, 8), Outside::real());
    let error = handle.caller().await.unwrap_err();
    assert_eq!(chain(&error), "the vault did not answer: vault is down");
}

#[actix::test]
async fn after_every_ending_another_vault_answers() {
    let (handle, owned) = VaultKeeper::owned(narrow(2, 8), outside());
    let settings = OverseerSettings {
        ping_every: Duration::from_millis(20),
        stuck_after: Duration::from_secs(3),
        restarts_at_once: 1,
    };
    let overseer = Overseer::launch(settings, vec![Box::new(owned)], Arc::new(|_| {}));
    let soon = Duration::from_secs(20);
    for ending in Ending::ALL {
        assert!(handle.slot().up(soon).await);
        assert!(seal(&handle).await.is_ok());
        let before = handle.slot().addr().unwrap();
        before.do_send(Force(ending));
        // Not by the clock: the states of the owner say when another life is there.
        let mut states = overseer.subscribe();
        let replaced = async {
            while handle.slot().addr().is_none_or(|now| now == before) {
                states.changed().await.unwrap();
            }
        };
        tokio::time::timeout(soon, replaced).await.unwrap_or_else(|_| panic!("{ending:?}: never replaced"));
        if ending == Ending::BlockThread {
            release_blocked_threads();
        }
    }
    assert!(seal(&handle).await.is_ok());
    overseer.stop(soon).await;
}
