//! Secrets that can be told apart from everything else, and the forms in which they might be found again.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use aho_corasick::AhoCorasick;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};

/// Secrets by what they are.
#[derive(Default)]
pub struct Canaries(Vec<(String, Vec<u8>)>);

impl Canaries {
    /// Watches for a text.
    pub fn text(&mut self, what: &str, text: &str) {
        assert!(text.len() >= 8, "{what} is too short to be told apart");
        self.0.push((what.to_owned(), text.as_bytes().to_vec()));
    }

    /// Watches for bytes, and for the lines of the text file that holds them.
    pub fn bytes(&mut self, what: &str, bytes: &[u8]) {
        self.0.push((what.to_owned(), bytes.to_vec()));
    }

    /// Watches for a private key: each line of its PEM text, and some bytes from the part that is secret.
    pub fn key(&mut self, what: &str, text: &str) {
        for line in text.lines().filter(|line| !line.starts_with('-') && line.len() == 64) {
            self.text(what, line);
        }
        let der = pem::parse(text).unwrap().into_contents();
        // An elliptic key begins near the start; of an RSA key, the modulus comes first.
        let secret = if der.len() < 300 { &der[38..62] } else { &der[400..424] };
        self.bytes(what, secret);
    }

    /// Fails when one of the outputs holds one of the secrets, in any form. All are looked for at once, in one pass over each output.
    pub fn assert_unseen(&self, outputs: &BTreeMap<String, Vec<u8>>) {
        let known: Vec<(String, Vec<u8>)> = self
            .0
            .iter()
            .flat_map(|(what, secret)| {
                forms(secret).into_iter().map(move |(form, wanted)| (format!("{what}, {form}"), wanted))
            })
            .collect();
        let search = AhoCorasick::new(known.iter().map(|(_, wanted)| wanted)).unwrap();
        let mut found = Vec::new();
        for (output, bytes) in outputs {
            let mut told = BTreeSet::new();
            // Also one that begins within another.
            for hit in search.find_overlapping_iter(bytes) {
                let what = &known[hit.pattern().as_usize()].0;
                if told.insert(what) {
                    found.push(format!("{what} is in {output}: {}", around(bytes, hit.range())));
                }
            }
        }
        assert!(found.is_empty(), "{}", found.join("\n"));
    }
}

/// As it is, in hexadecimal, and in base64 at each of the three places a byte can have in a group.
fn forms(secret: &[u8]) -> Vec<(String, Vec<u8>)> {
    let hex = hex::encode(secret);
    let mut forms = vec![
        ("plain".to_owned(), secret.to_vec()),
        ("hexadecimal".to_owned(), hex.clone().into_bytes()),
        ("capital hexadecimal".to_owned(), hex.to_uppercase().into_bytes()),
    ];
    for before in 0..3 {
        let shifted = [&vec![0; before], secret].concat();
        for (name, text) in
            [("base64", STANDARD_NO_PAD.encode(&shifted)), ("base64url", URL_SAFE_NO_PAD.encode(&shifted))]
        {
            // The first and the last characters also depend on the neighbours.
            let start = (before * 8).div_ceil(6);
            let end = shifted.len() * 8 / 6;
            forms.push((format!("{name} after {before}"), text.as_bytes()[start..end].to_vec()));
        }
    }
    forms
}

fn around(bytes: &[u8], at: Range<usize>) -> String {
    let end = bytes.len().min(at.end + 60);
    String::from_utf8_lossy(&bytes[at.start.saturating_sub(160)..end]).into_owned()
}

#[test]
fn a_secret_is_found_in_every_form() {
    let secret = b"a secret of odd length, 33 bytes.";
    let mut canaries = Canaries::default();
    canaries.bytes("it", secret);
    for (form, hidden) in [
        ("plain", [b"<".as_slice(), secret, b">"].concat()),
        ("hexadecimal", hex::encode(secret).into_bytes()),
        ("base64", STANDARD_NO_PAD.encode([b"12".as_slice(), secret, b"345"].concat()).into_bytes()),
        ("base64url", URL_SAFE_NO_PAD.encode([b"1".as_slice(), secret].concat()).into_bytes()),
    ] {
        let outputs = BTreeMap::from([("there".to_owned(), hidden)]);
        let found = std::panic::catch_unwind(|| canaries.assert_unseen(&outputs));
        assert!(found.is_err(), "not found in {form}");
    }
    canaries.assert_unseen(&BTreeMap::from([("there".to_owned(), b"nothing".to_vec())]));
}

#[test]
fn every_secret_is_named_also_one_that_begins_within_another() {
    let mut canaries = Canaries::default();
    for (what, secret) in [("first", "one two three"), ("second", "two three four"), ("third", "three")] {
        canaries.bytes(what, secret.as_bytes());
    }
    let outputs = BTreeMap::from([("there".to_owned(), b"(one two three four)".to_vec())]);
    let found = std::panic::catch_unwind(|| canaries.assert_unseen(&outputs)).unwrap_err();
    let found = found.downcast_ref::<String>().unwrap();
    for what in ["first, plain is in there", "second, plain is in there", "third, plain is in there"] {
        assert!(found.contains(what), "{found}");
    }
}
