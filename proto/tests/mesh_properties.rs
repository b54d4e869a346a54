//! Laws of the node side's keys and values, for anything that can be said with them.
#![cfg(test)]

use std::collections::BTreeMap;

use proptest::prelude::*;
use quartermaster_proto::mesh::{
    Kind, accounts,
    accounts::Account,
    esc,
    fill::{FillFile, Op, Request, Write},
    key,
    plan::{
        Assignment, Attributes, Contents, Credential, Digest, FilePlan, ItemPlan, Mode, OnChange, Plan,
        Planned, ProvisionPlan, Reference, SecretPlan, Templates, WriteMode, read_assignment,
    },
    report::{Outcome, Report},
    signature, unesc,
    value::Json,
    vault::{Binding, SecretName},
};
use quartermaster_proto::time::WallClock;
use zeroize::Zeroizing;

/// Names as they may be, with dots, blanks, wildcards and characters beyond ASCII.
fn names() -> impl Strategy<Value = String> {
    "[a-z0-9 .*>=_:é😀-]{1,12}"
}

fn providers() -> impl Strategy<Value = String> {
    "[A-Za-z0-9_-]{1,12}"
}

fn numbers() -> impl Strategy<Value = Json> {
    "-?(0|[1-9][0-9]{0,30})(\\.[0-9]{1,9})?(e[+-]?[0-9]{1,3})?".prop_map(|text| Json::read(&text).unwrap())
}

fn plans() -> impl Strategy<Value = Plan> {
    let files = prop::collection::vec((names(), any::<bool>(), 0..0o1000_u16), 0..4);
    let secrets = prop::collection::vec(any::<bool>(), 0..3);
    let provisions =
        prop::collection::vec((names(), providers(), 0..3_usize, prop::option::of(names())), 0..3);
    let placement = prop::collection::btree_map(names(), numbers(), 0..3);
    (files, secrets, provisions, placement, names()).prop_map(|(files, secrets, provisions, values, item)| {
        let files = files.into_iter().enumerate().map(|(at, (template, seed, mode))| FilePlan {
            path: format!("/etc/f{at}"),
            template,
            write: if seed { WriteMode::Seed } else { WriteMode::Owned },
            attributes: Attributes { mode: Mode::parse(&format!("{mode:04o}")), ..Attributes::default() },
            on_change: seed.then(|| OnChange::Command(vec!["/bin/x".to_owned(), String::new()])),
            filters: seed,
        });
        let secrets = secrets.into_iter().enumerate().map(|(at, has_path)| SecretPlan {
            name: format!("s{at}"),
            path: has_path.then(|| format!("/etc/s{at}")),
            attributes: Attributes::default(),
            on_change: None,
        });
        let provisions =
            provisions.into_iter().enumerate().map(|(at, (provision, provider, form, at_node))| {
                let credential = Credential::ALL[form];
                ProvisionPlan {
                    provision,
                    provider,
                    credential,
                    local: Some(format!("l{at}")),
                    name: (credential != Credential::None).then(|| format!("p{at}")),
                    at: at_node,
                    path: None,
                    attributes: Attributes::default(),
                    on_change: None,
                }
            });
        let contents = Contents {
            files: files.collect(),
            secrets: secrets.collect(),
            provisions: provisions.collect(),
            items: vec![ItemPlan { collection: item.clone(), template: item }],
            ..Contents::default()
        };
        let reference = Reference::NatsObject { bucket: "t".to_owned(), name: "a/b c".to_owned() };
        let placement = BTreeMap::from([(Kind::Port, values)]);
        Plan { templates: Templates { reference, digest: Digest::of(b"x") }, placement, contents }
    })
}

proptest! {
    #[test]
    fn a_text_and_its_token_are_one_to_one(text in "\\PC{1,20}|[\\x01-\\x7f]{1,20}", other in "\\PC{0,20}") {
        let token = esc(&text);
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_/=".contains(&byte);
        prop_assert!(token.bytes().all(is_plain));
        prop_assert_eq!(unesc(&token), Some(text));
        if let Some(back) = unesc(&other) {
            prop_assert_eq!(esc(&back), other);
        }
    }

    #[test]
    fn a_key_gives_back_its_parts(node in names(), module in names(), name in "\\PC{1,30}") {
        let read = key::parts::<3>(&key::config_key(&node, &module, &name).unwrap());
        prop_assert_eq!(read, Some([node, module, name]));
    }

    #[test]
    fn an_assignment_that_is_written_is_read(
        node in names(), module in names(), serial in any::<u64>(), plan in plans()
    ) {
        let key = key::module_key(&node, &module).unwrap();
        let assignment = Assignment { node, module, serial, planned: Planned::Plan(Box::new(plan)) };
        prop_assert_eq!(read_assignment(&key, &assignment.encode()), Ok((assignment, vec![])));
    }

    #[test]
    fn a_stored_value_keeps_its_digits(number in numbers(), text in ".{0,40}") {
        let stored = Json::from_bucket(number.get().as_bytes()).unwrap();
        prop_assert_eq!(stored.text().unwrap(), number.get());
        let string = Json::string(&text);
        let stored = Json::from_bucket(string.get().as_bytes()).unwrap();
        prop_assert_eq!(stored.text().unwrap(), text);
    }

    #[test]
    fn a_vaults_name_is_one_to_one(
        provider in providers(), provision in names(), node in names(), module in names(), local in prop::option::of(names())
    ) {
        let binding = Binding { provider, provision, node, module, local };
        for name in [SecretName::Pair(binding.clone()), SecretName::Provision(binding)] {
            prop_assert_eq!(name.to_string().parse(), Ok(name));
        }
    }

    #[test]
    fn a_client_may_write_nothing_of_another_machine(mine in names(), other in names(), module in names()) {
        prop_assume!(mine != other);
        let grant = Account::Provisioner { node: mine }.grant();
        let theirs = key::module_key(&other, &module).unwrap();
        for bucket in [key::NEEDS, key::APPLIED, key::COLLECT, key::CONFIG, key::ASSIGNMENTS] {
            let subject = key::kv_subject(bucket, &theirs);
            prop_assert!(!grant.publish.iter().any(|pattern| accounts::matches(pattern, &subject)), "{}", subject);
        }
    }

    #[test]
    fn a_line_of_the_socket_holds_any_content(content in prop::collection::vec(any::<u8>(), 0..300), id in any::<u64>()) {
        let sha256 = Digest::of(&content).hex();
        let file = FillFile { path: "/a".to_owned(), content: Zeroizing::new(content), sha256, sensitive: true };
        let op = Op::Write(Write { module: "a".to_owned(), plan: Digest::of(b""), revision: id, files: vec![file] });
        let request = Request { id, op };
        let line = request.encode();
        prop_assert_eq!(line.split(|byte| *byte == b'\n').count(), 2);
        prop_assert_eq!(Request::read(&line), Ok(request));
    }

    #[test]
    fn a_report_comes_back(reason in ".{0,2000}", seconds in 0..4_000_000_000_i64) {
        let at = WallClock::from_seconds(seconds);
        let outcome = Outcome::failed(&reason, Some(at));
        let (node, module, run) = (reason.clone(), "m".to_owned(), String::new());
        let report = Report { node, module, run, revision: 1, at, outcome };
        prop_assert_eq!(Report::read(&report.encode()), Ok(report));
    }

    #[test]
    fn a_signature_holds_for_what_was_signed_alone(
        body in prop::collection::vec(any::<u8>(), 0..60), flip in 0..60_usize, subject in "[a-z.]{1,20}"
    ) {
        let header = signature::sign(&[7; 32], &subject, &body);
        let key = header.split('.').nth(1).unwrap().parse().unwrap();
        prop_assert_eq!(signature::verify(Some(&header), &[key], &subject, &body), Ok(()));
        let mut other = body.clone();
        if let Some(byte) = other.get_mut(flip) {
            *byte ^= 1;
            prop_assert!(signature::verify(Some(&header), &[key], &subject, &other).is_err());
        }
        let elsewhere = format!("{subject}.x");
        prop_assert!(signature::verify(Some(&header), &[key], &elsewhere, &body).is_err());
    }
}
