//! Certificate requests: what honest servers send, and what others could slip past a site's CA.

use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use quartermaster_proto::choria::Identity;
use quartermaster_proto::choria::csr::{
    CsrError, CsrFacts, CsrName, MAX_CSR, NameKind, deny_pattern, examine, judge,
};
use rcgen::{
    Attribute, CertificateParams, CustomExtension, DistinguishedName, DnType, DnValue, KeyPair, SanType,
};
use regex::Regex;

use crate::recorded;

const EXTENSION_REQUEST: &[u64] = &[1, 2, 840, 113_549, 1, 9, 14];
const MICROSOFT_REQUEST: &[u64] = &[1, 3, 6, 1, 4, 1, 311, 2, 1, 14];
const SAN: &[u64] = &[2, 5, 29, 17];
const SAN_DER: &[u8] = &[0x06, 0x03, 0x55, 0x1d, 0x11];
const BASIC: &[u64] = &[2, 5, 29, 19];
const USAGE: &[u64] = &[2, 5, 29, 15];

static KEY: LazyLock<KeyPair> = LazyLock::new(|| KeyPair::generate().unwrap());

/// A DER element with a short or two-byte length.
fn der(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    let body = parts.concat();
    let mut out = vec![tag];
    match u8::try_from(body.len()) {
        Ok(short @ ..128) => out.push(short),
        _ => out.extend([
            0x82,
            u8::try_from(body.len() >> 8).unwrap(),
            u8::try_from(body.len() & 0xff).unwrap(),
        ]),
    }
    out.extend(body);
    out
}

struct Csr {
    params: CertificateParams,
    attributes: Vec<Attribute>,
}

fn csr(cn: &str) -> Csr {
    subject(&[(DnType::CommonName, DnValue::Utf8String(cn.to_owned()))])
}

fn subject(names: &[(DnType, DnValue)]) -> Csr {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    for (kind, value) in names {
        params.distinguished_name.push(kind.clone(), value.clone());
    }
    Csr { params, attributes: Vec::new() }
}

impl Csr {
    fn san(mut self, name: SanType) -> Self {
        self.params.subject_alt_names.push(name);
        self
    }

    fn dns(self, name: &str) -> Self {
        // Written by hand: the library refuses names that are no IA5 text.
        self.extension(SAN, false, &der(0x30, &[&der(0x82, &[name.as_bytes()])]))
    }

    fn raw_san(self, general_names: &[&[u8]]) -> Self {
        self.extension(SAN, false, &der(0x30, general_names))
    }

    fn extension(mut self, oid: &[u64], critical: bool, content: &[u8]) -> Self {
        let mut extension = CustomExtension::from_oid_content(oid, content.to_vec());
        extension.set_criticality(critical);
        self.params.custom_extensions.push(extension);
        self
    }

    fn attribute(mut self, oid: &'static [u64], values: Vec<u8>) -> Self {
        self.attributes.push(Attribute { oid, values });
        self
    }

    fn pem(self) -> String {
        self.params.serialize_request_with_attributes(&*KEY, self.attributes).unwrap().pem().unwrap()
    }
}

/// One SAN extension inside a list of extensions, for attributes written by hand.
fn san_extensions(dns: &str) -> Vec<u8> {
    let san = der(0x30, &[&der(0x82, &[dns.as_bytes()])]);
    der(0x30, &[&der(0x30, &[SAN_DER, &der(0x04, &[&san])])])
}

fn peers_deny_list() -> Vec<Regex> {
    // Compiled plainly, as a caller may: case must be folded all the same.
    [r"\.privileged.mcollective$", r"\.privileged.choria$", r"\.mcollective$", r"\.choria$"]
        .map(|pattern| Regex::new(pattern).unwrap())
        .to_vec()
}

fn verdict(csr: Csr, identity: &str) -> Result<(), CsrError> {
    examine(&csr.pem())
        .and_then(|facts| judge(&facts, &Identity::parse(identity).unwrap(), &peers_deny_list()))
}

fn accepted(csr: Csr) {
    assert_eq!(verdict(csr, "web1.example.net"), Ok(()));
}

fn refused(csr: Csr, expected: &str) {
    let error = verdict(csr, "web1.example.net").unwrap_err();
    let text = error.to_string();
    assert!(text.contains(expected), "{text:?} does not say {expected:?}");
    assert!(text.len() < 400 && !text.chars().any(char::is_control), "{text:?}");
}

fn web1() -> Csr {
    csr("web1.example.net")
}

// Honest requests.

#[test]
fn recorded_requests_pass() {
    for network in ["v1-x509.jsonl", "v1-x509-key.jsonl"] {
        let (_, reply) = recorded::call(network, "gencsr");
        let facts = examine(reply["csr"].as_str().unwrap()).unwrap();
        let expected = CsrFacts {
            common_names: vec!["web1.example.net".into()],
            names: vec![CsrName { kind: NameKind::CommonName, value: "web1.example.net".into() }],
            extensions: Vec::new(),
            authority: None,
        };
        assert_eq!(facts, expected);
        assert_eq!(judge(&facts, &Identity::parse("web1.example.net").unwrap(), &peers_deny_list()), Ok(()));
    }
}

#[test]
fn harmless_names_of_every_kind_pass() {
    accepted(web1());
    accepted(web1().dns("www.example.net"));
    accepted(web1().dns("*.example.net"));
    accepted(web1().san(SanType::IpAddress("192.0.2.7".parse().unwrap())));
    accepted(web1().san(SanType::IpAddress("2001:db8::7".parse().unwrap())));
    accepted(web1().san(SanType::Rfc822Name("ops@example.net".try_into().unwrap())));
    accepted(web1().san(SanType::URI("https://web1.example.net/x".try_into().unwrap())));
    accepted(
        web1().san(SanType::OtherName((vec![1, 3, 6, 1, 4, 1, 311, 20, 2, 3], "host@EXAMPLE.NET".into()))),
    );
    let usage = der(0x03, &[&[0x05, 0xa0]]);
    accepted(web1().extension(USAGE, true, &usage).extension(BASIC, true, &der(0x30, &[])));
}

#[test]
fn the_names_of_every_kind_are_listed() {
    let request = web1()
        .san(SanType::IpAddress("192.0.2.7".parse().unwrap()))
        .san(SanType::Rfc822Name("ops@example.net".try_into().unwrap()))
        .san(SanType::URI("ldap://user@dir.example.net:389/x".try_into().unwrap()))
        .san(SanType::DnsName("web1".try_into().unwrap()));
    let facts = examine(&request.pem()).unwrap();
    let names: Vec<(NameKind, &str)> =
        facts.names.iter().map(|name| (name.kind, name.value.as_str())).collect();
    assert_eq!(
        names,
        [
            (NameKind::CommonName, "web1.example.net"),
            (NameKind::Ip, "192.0.2.7"),
            (NameKind::Email, "ops@example.net"),
            (NameKind::Uri, "ldap://user@dir.example.net:389/x"),
            (NameKind::Uri, "dir.example.net"),
            (NameKind::Dns, "web1"),
        ]
    );
}

// The common name is the identity.

#[test]
fn the_common_name_must_be_the_identity() {
    refused(csr("web2.example.net"), "common name web2.example.net does not match identity web1.example.net");
    refused(csr("WEB1.example.net"), "does not match identity");
    refused(csr("web1.example.net."), "does not match identity");
    refused(csr(" web1.example.net"), "does not match identity");
    refused(csr("web1.example.net\0"), "does not match identity");
    refused(csr("web1.example.net\n\u{1b}[2J"), "does not match identity");
    refused(csr(&"x".repeat(10_000)), "does not match identity");
    refused(csr(""), "does not match identity");
    refused(subject(&[]), "no common name");
    refused(subject(&[(DnType::OrganizationName, "x".into())]), "no common name");
}

#[test]
fn a_second_common_name_is_refused() {
    let text = |name: &str| DnValue::Utf8String(name.to_owned());
    let second = DnType::CustomDnType(vec![2, 5, 4, 3]);
    for other in ["rip.choria", "web1.example.net"] {
        let request =
            subject(&[(DnType::CommonName, text("web1.example.net")), (second.clone(), text(other))]);
        refused(request, "2 common names");
    }
}

#[test]
fn a_common_name_in_any_string_type_is_read() {
    let wide = DnValue::BmpString("web1.example.net".try_into().unwrap());
    accepted(subject(&[(DnType::CommonName, wide)]));
    let wider = DnValue::UniversalString("web1.example.net".try_into().unwrap());
    accepted(subject(&[(DnType::CommonName, wider)]));
}

// The deny list.

#[test]
fn privileged_identities_are_refused() {
    let check = |name: &str| {
        let error = verdict(csr(name), name).unwrap_err();
        assert!(matches!(&error, CsrError::Denied { kind: NameKind::CommonName, .. }), "{name}: {error}");
    };
    check("x.choria");
    check("x.mcollective");
    check("x.privileged.choria");
    check("X.CHORIA");
    check("x.Privileged.Mcollective");
}

#[test]
fn the_deny_list_covers_host_names() {
    for name in [
        "x.choria",
        "X.CHORIA",
        "x.ChoRia",
        "x.choria.",
        "x.choria...",
        "*.choria",
        "x.privileged.mcollective",
    ] {
        refused(web1().dns(name), "matches denied certificate pattern");
    }
    let upper = [Regex::new(r"\.CHORIA$").unwrap()];
    let facts = examine(&web1().dns("x.Choria.").pem()).unwrap();
    assert!(
        judge(&facts, &Identity::parse("web1.example.net").unwrap(), &upper).is_err(),
        "an upper-case pattern"
    );
    refused(web1().dns("x.choria"), r"x.choria matches denied certificate pattern \.choria$ (DNS name)");
    refused(
        web1()
            .san(SanType::DnsName("www.example.net".try_into().unwrap()))
            .san(SanType::DnsName("x.choria".try_into().unwrap())),
        "(DNS name)",
    );
}

#[test]
fn the_deny_list_covers_names_a_c_reader_would_end_at_nul() {
    refused(web1().dns("x.choria\0.example.net"), r"x.choria\u{0}.example.net matches denied");
    refused(web1().dns("www\0.example.net"), "control character");
    refused(web1().dns("x.choria "), "white space");
    refused(web1().dns("x.choria\n"), "control character");
    refused(web1().dns("ｘ．ｃｈｏｒｉａ"), "outside ASCII");
    refused(web1().dns(""), "control character, white space");
}

#[test]
fn the_deny_list_covers_mail_uri_ip_and_registered_id() {
    refused(web1().san(SanType::Rfc822Name("root@x.choria".try_into().unwrap())), "(e-mail address)");
    refused(web1().san(SanType::URI("https://x.choria".try_into().unwrap())), "(URI)");
    refused(web1().san(SanType::URI("https://u:p@X.choria.:8443/path?q".try_into().unwrap())), "(URI)");
    refused(web1().san(SanType::URI("urn:x.choria".try_into().unwrap())), "(URI)");
    let deny = [Regex::new(r"^192\.0\.2\.").unwrap(), Regex::new(r"^1\.2\.3").unwrap()];
    let denied = |request: Csr| {
        judge(&examine(&request.pem()).unwrap(), &Identity::parse("web1.example.net").unwrap(), &deny)
    };
    let ip = web1().san(SanType::IpAddress("192.0.2.7".parse().unwrap()));
    assert!(matches!(denied(ip), Err(CsrError::Denied { kind: NameKind::Ip, .. })));
    let id = web1().raw_san(&[&der(0x88, &[&[0x2a, 0x03]])]);
    assert!(matches!(denied(id), Err(CsrError::Denied { kind: NameKind::RegisteredId, .. })));
}

#[test]
fn the_deny_list_covers_directory_and_other_names() {
    let cn = |text: &[u8]| der(0x31, &[&der(0x30, &[&[0x06, 0x03, 0x55, 0x04, 0x03], &der(0x0c, &[text])])]);
    let directory = |text: &[u8]| der(0xa4, &[&der(0x30, &[&cn(text)])]);
    refused(web1().raw_san(&[&directory(b"x.choria")]), "(directory name)");
    accepted(web1().raw_san(&[&directory(b"Some Host")]));

    let other = |value: &[u8]| der(0xa0, &[&[0x06, 0x03, 0x2a, 0x03, 0x04], &der(0xa0, &[value])]);
    refused(web1().raw_san(&[&other(&der(0x0c, &[b"x.choria"]))]), "(other name)");
    refused(
        web1().raw_san(&[&other(&der(0x30, &[&der(0x02, &[&[1]]), &der(0x16, &[b"x.choria"])]))]),
        "(other name)",
    );
    let wide: Vec<u8> = "x.choria".encode_utf16().flat_map(u16::to_be_bytes).collect();
    refused(web1().raw_san(&[&other(&der(0x1e, &[&wide]))]), "(other name)");
    accepted(web1().raw_san(&[&other(&der(0x0c, &[b"fine"]))]));
}

#[test]
fn names_that_cannot_be_read_are_refused() {
    let unreadable = "that cannot be read";
    let other = |value: &[u8]| der(0xa0, &[&[0x06, 0x03, 0x2a, 0x03, 0x04], &der(0xa0, &[value])]);
    refused(web1().raw_san(&[&other(&der(0x04, &[b"x.choria"]))]), unreadable);
    refused(web1().raw_san(&[&other(&der(0x82, &[b"x.choria"]))]), unreadable);
    refused(web1().raw_san(&[&other(&[])]), unreadable);
    let hidden_behind_a_text = der(0x30, &[&der(0x0c, &[b"fine"]), &der(0x82, &[b"x.choria"])]);
    refused(web1().raw_san(&[&other(&hidden_behind_a_text)]), unreadable);
    let nested = (0..20).fold(der(0x0c, &[b"x.choria"]), |inner, _| der(0x30, &[&inner]));
    refused(web1().raw_san(&[&other(&nested)]), unreadable);
    refused(web1().raw_san(&[&der(0xa3, &[b"x400"])]), unreadable);
    refused(web1().raw_san(&[&der(0xa5, &[b"edi"])]), unreadable);
    refused(web1().raw_san(&[&der(0x87, &[&[1, 2, 3]])]), unreadable);
    refused(web1().raw_san(&[&der(0x82, &[&[0xff, 0xfe]])]), unreadable);
    refused(web1().raw_san(&[&der(0x89, &[b"?"])]), "");
}

#[test]
fn a_subjects_mail_address_and_user_id_are_names_too() {
    for oid in [vec![1, 2, 840, 113_549, 1, 9, 1], vec![0, 9, 2342, 19_200_300, 100, 1, 1]] {
        let request = subject(&[
            (DnType::CommonName, "web1.example.net".into()),
            (DnType::CustomDnType(oid), "x.choria".into()),
        ]);
        refused(request, "(subject attribute)");
    }
    accepted(subject(&[
        (DnType::OrganizationName, "Example Net".into()),
        (DnType::CommonName, "web1.example.net".into()),
    ]));
}

#[test]
fn patterns_are_compiled_as_the_peer_reads_them() {
    assert!(deny_pattern(r"/\.choria$/").unwrap().is_match("X.CHORIA"));
    assert!(deny_pattern("choria").unwrap().is_match("a.choria.b"), "unanchored");
    assert!(deny_pattern("/").unwrap().is_match("a/b"));
    let error = deny_pattern("(unclosed\n").unwrap_err();
    assert_eq!(error.to_string(), r"deny list pattern `(unclosed\n` is not a regular expression");
    assert!(deny_pattern(&"(a{1000}){1000}".repeat(3)).is_err(), "a pattern that eats memory");
}

// Rights.

#[test]
fn a_request_for_a_ca_is_refused() {
    let ca_true = der(0x30, &[&[0x01, 0x01, 0xff]]);
    refused(web1().extension(BASIC, true, &ca_true), "certificate authority (basic constraints CA:TRUE)");
    refused(web1().extension(BASIC, false, &ca_true), "certificate authority");
    refused(web1().extension(USAGE, true, &der(0x03, &[&[0x02, 0x04]])), "(key usage keyCertSign)");
    refused(web1().extension(USAGE, true, &der(0x03, &[&[0x01, 0x02]])), "(key usage cRLSign)");
    refused(
        web1().extension(&[2, 16, 840, 1, 113_730, 1, 1], false, &der(0x03, &[&[0x02, 0x04]])),
        "Netscape",
    );
}

#[test]
fn unknown_critical_extensions_are_refused_and_others_are_not() {
    let private = &[1, 3, 6, 1, 4, 1, 99_999, 1];
    refused(web1().extension(private, true, b"\x05\x00"), "unknown critical extension 1.3.6.1.4.1.99999.1");
    accepted(web1().extension(private, false, b"\x05\x00"));
    let constraints = der(0x30, &[&der(0xa0, &[&der(0x30, &[&der(0x82, &[b"x"])])])]);
    refused(web1().extension(&[2, 5, 29, 30], true, &constraints), "unknown critical extension 2.5.29.30");
}

#[test]
fn extensions_that_cannot_be_decoded_are_refused() {
    refused(web1().extension(SAN, false, b"garbage"), "cannot be decoded");
    refused(web1().extension(BASIC, false, &der(0x04, &[b"x"])), "cannot be decoded");
}

#[test]
fn extensions_asked_for_twice_are_refused() {
    let twice = "extensions more than once";
    refused(web1().dns("www.example.net").dns("x.choria"), twice);
    let request = || der(0x31, &[&san_extensions("x.choria")]);
    refused(web1().dns("www.example.net").attribute(EXTENSION_REQUEST, request()), twice);
    let usage = der(0x30, &[&[0x06, 0x03, 0x55, 0x1d, 0x0f], &der(0x04, &[&der(0x03, &[&[0x05, 0xa0]])])]);
    refused(
        web1().dns("www.example.net").attribute(EXTENSION_REQUEST, der(0x31, &[&der(0x30, &[&usage])])),
        twice,
    );
    let two_values = der(0x31, &[&san_extensions("www.example.net"), &san_extensions("x.choria")]);
    refused(web1().attribute(EXTENSION_REQUEST, two_values), twice);
    refused(web1().attribute(MICROSOFT_REQUEST, request()), twice);
    refused(web1().attribute(EXTENSION_REQUEST, request()), "x.choria matches denied");
    accepted(web1().attribute(EXTENSION_REQUEST, der(0x31, &[&san_extensions("www.example.net")])));
}

// The text itself.

fn broken(pem: &str) -> CsrError {
    examine(pem).unwrap_err()
}

#[test]
fn a_request_that_the_sender_does_not_own_is_refused() {
    let pem = web1().pem();
    let body: String = pem.lines().filter(|line| !line.starts_with("-----")).collect();
    let mut forged = STANDARD.decode(body).unwrap();
    let at = forged.windows(4).position(|window| window == b"web1").unwrap();
    forged[at + 3] = b'2';
    let wrap = |der: &[u8]| {
        format!(
            "-----BEGIN CERTIFICATE REQUEST-----\n{}\n-----END CERTIFICATE REQUEST-----\n",
            STANDARD.encode(der)
        )
    };
    assert_eq!(broken(&wrap(&forged)), CsrError::ProofOfPossession);
    forged[at + 3] = b'1';
    assert!(examine(&wrap(&forged)).is_ok());
    forged.push(0);
    assert_eq!(broken(&wrap(&forged)), CsrError::Der { what: "bytes after the request" });
    assert_eq!(broken(&wrap(b"junk")), CsrError::Der { what: "request" });
}

#[test]
fn text_that_is_not_exactly_one_block_is_refused() {
    let pem = web1().pem();
    assert!(examine(&format!("\n\n{pem}\n")).is_ok());
    let check = |text: &str| assert!(matches!(broken(text), CsrError::Pem { .. }), "{text}");
    check("");
    check("not PEM");
    check(&format!("text before\n{pem}"));
    check(&format!("{pem}{}", csr("x.choria").pem()));
    check(&format!("{pem}text after\n"));
    check(&pem.replace("CERTIFICATE REQUEST", "CERTIFICATE"));
    check(&pem[..pem.len() / 2]);
    check(&pem.replace('M', "*"));
    assert_eq!(broken(&"x".repeat(MAX_CSR + 1)), CsrError::TooLong { bytes: MAX_CSR + 1 });
}
