//! NATS subjects (choria.md 2).

use md5::{Digest as _, Md5};

use super::{event::EventKind, identity::Identity};

/// The subject prefix of every reply to `caller`: `<collective>.reply.<md5 hex of caller>`; append `.>` to subscribe.
pub fn reply_prefix(collective: &str, caller: &str) -> String {
    format!("{collective}.reply.{}", hex::encode(Md5::digest(caller.as_bytes())))
}

/// The subject of the reply to one request: [`reply_prefix`] and the request's id.
pub fn reply(collective: &str, caller: &str, id: &str) -> String {
    format!("{}.{id}", reply_prefix(collective, caller))
}

/// The subject of a request to one host.
pub fn node(collective: &str, identity: &Identity) -> String {
    format!("{collective}.node.{identity}")
}

/// The subject of a request to every host that runs `agent`.
pub fn broadcast(collective: &str, agent: &str) -> String {
    format!("{collective}.broadcast.agent.{agent}")
}

/// The subject of a lifecycle event of `component`.
pub fn event(kind: EventKind, component: &str) -> String {
    format!("choria.lifecycle.event.{kind}.{component}")
}

/// Whether `subject` may be published to as it stands: no empty token, wildcard, white space, control or non-ASCII byte.
pub fn is_publishable(subject: &str) -> bool {
    // An identity has the same rules but for its length.
    subject.len() <= 1024
        && !subject.is_empty()
        && subject.split('.').all(|token| {
            !token.is_empty()
                && token.bytes().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'*' | b'>'))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reply_subjects_hold_the_digest_of_the_caller() {
        assert_eq!(
            reply("provisioning", "choria=provisioner.mcollective", "51255f1a19cb456fb666b4e55870a94b"),
            "provisioning.reply.344aa967e9f3339639bf1c959876175b.51255f1a19cb456fb666b4e55870a94b"
        );
        assert_eq!(
            reply("provisioning", "provisioner_signer", "3MnBmjktYnKAQhIwD7mSZ8N90iq"),
            "provisioning.reply.22ec67b1822edddbee1f71725ee3827c.3MnBmjktYnKAQhIwD7mSZ8N90iq"
        );
    }

    #[test]
    fn request_and_event_subjects() {
        let identity = Identity::parse("n1.example.net").unwrap();
        assert_eq!(node("provisioning", &identity), "provisioning.node.n1.example.net");
        assert_eq!(broadcast("provisioning", "discovery"), "provisioning.broadcast.agent.discovery");
        assert_eq!(
            event(EventKind::Startup, "provision_mode_server"),
            "choria.lifecycle.event.startup.provision_mode_server"
        );
    }

    #[test]
    fn only_plain_subjects_are_published_to() {
        assert!(is_publishable("provisioning.reply.abc.def"));
        for subject in ["", ".", "a..b", "a.>", "a.*", "a b", "a\r\nPUB x 0", "é", &"x".repeat(1025)] {
            assert!(!is_publishable(subject), "{subject:?}");
        }
    }
}
