//! Broadcast discovery (choria.md 3.6, 12.4).

use base64::{Engine as _, engine::general_purpose::STANDARD};

use super::generation::Generation;

/// The whole payload of a discovery reply; it is not JSON.
pub const PONG: &[u8] = b"pong";

/// The payload of a discovery request: base64 of `ping` in both generations. Protocol 2 encodes every payload once more, so
/// that it travels there in double base64, as hosts insist.
pub fn ping_payload(_generation: Generation) -> Vec<u8> {
    STANDARD.encode("ping").into_bytes()
}

/// Whether a host takes this payload for a discovery request: after base64 where it is base64, it contains `ping`.
pub fn is_ping(payload: &[u8]) -> bool {
    let decoded = STANDARD.decode(payload);
    decoded.as_deref().unwrap_or(payload).windows(4).any(|part| part == b"ping")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_ping_is_taken_and_spelled_as_the_peer_spells_it() {
        for generation in [Generation::V1, Generation::V2] {
            assert_eq!(ping_payload(generation), b"cGluZw==");
            assert!(is_ping(&ping_payload(generation)));
        }
    }

    #[test]
    fn a_bare_ping_is_itself_base64_and_so_is_not_taken() {
        assert!(!is_ping(b"ping"));
        assert!(is_ping(b"a ping!"));
        assert!(is_ping(STANDARD.encode("{\"x\":\"ping\"}").as_bytes()));
        assert!(!is_ping(b""));
        assert!(!is_ping(b"pong"));
    }
}
