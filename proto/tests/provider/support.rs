//! Short ways to say a value.

use quartermaster_proto::provider::{Decoded, Frame, Limits, Members, Reply, Type, Value, decode};

/// A value from JSON text, read as a provider's result is.
pub fn json(text: &str) -> Value {
    let line = format!("{{\"id\":1,\"result\":{text}}}");
    match decode(line.as_bytes(), &Limits::PROVIDER) {
        Ok(Decoded {
            frame: Frame::Reply(Reply { body: quartermaster_proto::provider::Body::Result(value), .. }),
            ..
        }) => value,
        other => panic!("{text}: {other:?}"),
    }
}

/// The members of an object from JSON text.
pub fn members(text: &str) -> Members {
    json(text).as_object().unwrap().clone()
}

pub fn ty(text: &str) -> Type {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// One line of a provider, which must be an answer.
pub fn reply(line: &str) -> Reply {
    match decode(line.as_bytes(), &Limits::PROVIDER).unwrap_or_else(|error| panic!("{line}: {error}")).frame {
        Frame::Reply(reply) => reply,
        other => panic!("{line}: {other:?}"),
    }
}
