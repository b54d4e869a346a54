//! Bodies for the provider protocol.

use serde::de::IgnoredAny;

use super::is_printable;
use crate::provider::{
    Decoded, Frame, Incoming, Limits, Lines, LogReader, Mask, NumberError, Overlong, Reply, Schema,
    SyntaxError, Type, Value, decode, decode_incoming, encode, encode_reply, excerpt, validate,
};

/// An answer that is understood is written again and says the same; every reading of it ends well or in a printable error.
pub fn provider_reply(bytes: &[u8]) {
    let decoded = match decode(bytes, &Limits::PROVIDER) {
        Ok(decoded) => decoded,
        Err(error) => {
            is_printable(&error);
            let shown = excerpt(bytes, &Mask::default());
            assert!(!shown.contains(char::is_control) && shown.len() <= 10_000, "{shown:?}");
            return;
        }
    };
    decoded.warnings.iter().for_each(|warning| is_printable(warning));
    let Frame::Reply(reply) = decoded.frame else { return };
    let body = &reply.body;
    let endings = [
        body.clone().describe().map(drop),
        body.clone().configure(),
        body.clone().execute().map(drop),
        body.clone().ping(),
        body.clone().lookup().map(drop),
        body.clone().validate().map(drop),
    ];
    for error in endings.into_iter().filter_map(Result::err) {
        is_printable(&error);
    }
    let Ok(line) = encode_reply(&reply, &Limits::PROVIDER) else { return };
    assert_eq!(line.split(|byte| *byte == b'\n').count(), 2, "one line");
    match decode(&line, &Limits::PROVIDER) {
        Ok(Decoded { frame: Frame::Reply(Reply { id, body }), warnings }) => {
            assert!(warnings.is_empty() && id == reply.id && body == reply.body);
        }
        other => unreachable!("what we write is an answer: {other:?}"),
    }
}

/// A request that is understood is written again and asks the same.
pub fn provider_request(bytes: &[u8]) {
    match decode_incoming(bytes, &Limits::PROVIDER) {
        Ok(Incoming::Request(request)) => {
            if let Ok(line) = encode(&request, &Limits::PROVIDER) {
                assert_eq!(decode_incoming(&line, &Limits::PROVIDER), Ok(Incoming::Request(request)));
            }
        }
        Ok(_) => {}
        Err(error) => is_printable(&error),
    }
}

/// A schema that is used reads back from what is written of it, and shows as quiet text.
pub fn provider_schema(bytes: &[u8]) {
    match Schema::from_probe(bytes) {
        Ok(read) => {
            let schema = read.value;
            let again = Schema::from_value(&schema.to_value());
            assert!(
                again.is_ok_and(|again| again.value == schema && again.value.digest() == schema.digest())
            );
            assert!(schema.differences(&schema).is_empty());
            assert!(
                !schema.to_text().contains(|character: char| character.is_control() && character != '\n')
            );
            read.warnings.iter().for_each(|warning| is_printable(warning));
        }
        Err(error) => is_printable(&error),
    }
}

/// A type reads back from its canonical print.
pub fn provider_type(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match text.parse::<Type>() {
        Ok(ty) => {
            assert_eq!(ty.to_string().parse::<Type>().as_ref(), Ok(&ty));
            if let Err(complaints) = validate(&ty, &Value::from("text")) {
                for complaint in &complaints {
                    is_printable(complaint);
                }
            }
        }
        Err(error) => is_printable(&error),
    }
}

/// The grammar is that of another parser, what is written reads back, and converting twice changes nothing.
pub fn provider_value(bytes: &[u8]) {
    const TYPES: [&str; 6] = [
        "string",
        "set(any)",
        "list(list(number))",
        "map(set(string))",
        "tuple([bool,any])",
        "object({a=optional(object({b=any})),b=optional(number)})",
    ];
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let value = match Value::from_json(text, &Limits::PROVIDER) {
        Ok(value) => value,
        Err(error) => {
            is_printable(&error);
            let ours_alone = matches!(
                error,
                SyntaxError::Limit(_) | SyntaxError::Number { source: NumberError::Exponent, .. }
            );
            assert!(
                ours_alone || serde_json::from_str::<IgnoredAny>(text).is_err(),
                "refused by us alone: {text:?}"
            );
            return;
        }
    };
    assert!(serde_json::from_str::<IgnoredAny>(text).is_ok(), "read by us alone: {text:?}");
    for json in [value.to_json(), value.to_canonical().to_string()] {
        assert!(
            Value::from_json(&json, &Limits { max_bytes: usize::MAX, ..Limits::PROVIDER })
                == Ok(value.clone())
        );
    }
    for ty in TYPES.iter().filter_map(|ty| ty.parse::<Type>().ok()) {
        match validate(&ty, &value) {
            Ok(converted) => assert!(validate(&ty, &converted) == Ok(converted)),
            Err(complaints) => complaints.iter().for_each(|complaint| is_printable(complaint)),
        }
    }
}

/// However bytes arrive, they are the same lines; none is over the limit, and no byte but line ends is lost.
pub fn provider_lines(bytes: &[u8]) {
    // The limits are small here, so that a few bytes are many lines; more of them show nothing more.
    let bytes = bytes.get(..4_096).unwrap_or(bytes);
    let limit = bytes.first().map_or(1, |byte| usize::from(byte % 40) + 1);
    for overlong in [Overlong::Refuse, Overlong::Split] {
        let cut = |size: usize| {
            let mut lines = Lines::new(limit, overlong);
            let mut found = Vec::new();
            for piece in bytes.chunks(size) {
                lines.push(piece);
                found.extend(std::iter::from_fn(|| lines.next_line()));
                assert!(lines.held() <= limit + 1);
            }
            found.extend(std::iter::from_fn(|| lines.finish()));
            found
        };
        let whole = cut(bytes.len().max(1));
        assert!([1, 2, 5].iter().all(|size| cut(*size) == whole), "{bytes:?}");
        let lengths = whole.iter().flatten().map(bytes::Bytes::len);
        assert!(lengths.clone().all(|length| length <= limit));
        let is_end = |byte: &u8| matches!(byte, b'\n' | b'\r');
        let kept: usize =
            whole.iter().flatten().map(|line| line.iter().filter(|byte| !is_end(byte)).count()).sum();
        let sent = bytes.iter().filter(|byte| !is_end(byte)).count();
        assert!(kept == sent || whole.iter().any(Result::is_err), "{kept} of {sent}");
    }
}

/// Every line of stderr is understood somehow, and no secret is left in what is shown of it.
pub fn provider_log(bytes: &[u8]) {
    let mut log = LogReader::default();
    let secret: String = String::from_utf8_lossy(bytes).chars().take(3).collect();
    let mask = Mask::new([&Value::from(secret.as_str())]);
    for line in bytes.split(|byte| *byte == b'\n') {
        let shown = mask.text(&log.read(line).message);
        assert!(secret.is_empty() || secret.contains('*') || !shown.contains(&secret), "{shown:?}");
        let shown = excerpt(line, &mask);
        assert!(!shown.contains(char::is_control), "{shown:?}");
    }
}
