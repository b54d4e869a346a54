//! Laws of the provider protocol, over made-up values, types and frames.

use proptest::prelude::*;
use quartermaster_proto::provider::{
    AnyEncoding, AttrSchema, Attrs, Call, CallId, Declared as _, Execute, Field, Incoming, Limits, Members,
    Number, Request, Schema, Type, Value, decode_incoming, encode, validate,
};

fn names() -> impl Strategy<Value = String> {
    "[a-z_][a-z0-9_-]{0,6}"
}

/// Any text, also with quotes, escapes, line separators and characters beyond the first plane.
fn texts() -> impl Strategy<Value = String> {
    prop_oneof![
        ".{0,12}",
        "[\\x00-\\x1f\"\\\\/\u{85}\u{2028}\u{2029}\u{feff}😀é]{0,8}",
        "-?[0-9]{1,30}",
        Just("true".to_owned())
    ]
}

fn numbers() -> impl Strategy<Value = Number> {
    "-?(0|[1-9][0-9]{0,30})(\\.[0-9]{1,30})?([eE][+-]?[0-9]{1,3})?".prop_map(|text| text.parse().unwrap())
}

fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        numbers().prop_map(Value::from),
        texts().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::btree_map(texts(), inner, 0..5).prop_map(Value::from),
        ]
    })
}

fn types() -> impl Strategy<Value = Type> {
    let leaf = prop_oneof![Just(Type::String), Just(Type::Number), Just(Type::Bool), Just(Type::Any)];
    leaf.prop_recursive(4, 24, 4, |inner| {
        let boxed = inner.clone().prop_map(Box::new);
        let field = (inner.clone(), any::<bool>()).prop_map(|(ty, optional)| Field { ty, optional });
        prop_oneof![
            boxed.clone().prop_map(Type::List),
            boxed.clone().prop_map(Type::Set),
            boxed.prop_map(Type::Map),
            prop::collection::vec(inner, 0..4).prop_map(Type::Tuple),
            prop::collection::btree_map(names(), field, 0..4).prop_map(Type::Object),
        ]
    })
}

/// A type and a value that has it, or nearly.
fn typed() -> impl Strategy<Value = (Type, Value)> {
    types().prop_flat_map(|ty| {
        let value = of(&ty);
        (Just(ty), value)
    })
}

fn of(ty: &Type) -> BoxedStrategy<Value> {
    match ty {
        Type::String => {
            prop_oneof![texts().prop_map(Value::from), any::<bool>().prop_map(Value::from)].boxed()
        }
        Type::Number => {
            let as_text = numbers().prop_map(|number| Value::from(number.to_string()));
            prop_oneof![numbers().prop_map(Value::from), as_text].boxed()
        }
        Type::Bool => {
            prop_oneof![any::<bool>().prop_map(Value::from), Just(Value::from("true")), Just(Value::Null)]
                .boxed()
        }
        Type::Any => values().boxed(),
        Type::List(item) | Type::Set(item) => {
            prop::collection::vec(of(item), 0..4).prop_map(Value::from).boxed()
        }
        Type::Map(item) => prop::collection::btree_map(texts(), of(item), 0..4).prop_map(Value::from).boxed(),
        Type::Tuple(items) => items.iter().map(of).collect::<Vec<_>>().prop_map(Value::from).boxed(),
        Type::Object(fields) => {
            let each: Vec<_> = fields
                .iter()
                .map(|(name, field)| {
                    let given = of(&field.ty).prop_map(Some);
                    let value =
                        if field.optional { prop_oneof![given, Just(None)].boxed() } else { given.boxed() };
                    (Just(name.clone()), value)
                })
                .collect();
            let members = |each: Vec<(String, Option<Value>)>| {
                each.into_iter().filter_map(|(name, value)| Some((name, value?))).collect::<Value>()
            };
            each.prop_map(members).boxed()
        }
    }
}

fn reads(text: &str) -> Value {
    Value::from_json(text, &Limits::PROVIDER).unwrap()
}

/// Whether some runtime takes this for the end of a line, or a terminal for a command.
fn breaks_a_line(character: char) -> bool {
    character.is_control() || matches!(character, '\u{2028}' | '\u{2029}')
}

proptest! {
    // A failing case is printed whole; there is no file to commit.
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn values_come_back_as_they_were_written(value in values()) {
        prop_assert_eq!(&reads(&value.to_json()), &value);
        prop_assert_eq!(&reads(&value.to_canonical()), &value);
        prop_assert_eq!(reads(&value.to_json()).to_json(), value.to_json());
    }

    #[test]
    fn equal_values_have_equal_canonical_texts(left in values(), right in values()) {
        prop_assert_eq!(left == right, left.to_canonical() == right.to_canonical());
    }

    #[test]
    fn what_is_written_stands_on_one_line_for_every_runtime(value in values()) {
let text = value.to_json();
        prop_assert!(!text.contains(breaks_a_line));
    }

    #[test]
    fn numbers_are_plain_decimals_of_the_same_value(number in numbers(), zeros in 0_usize..5) {
        let text = number.as_str();
        prop_assert!(text.trim_start_matches('-').bytes().all(|byte| byte.is_ascii_digit() || byte == b'.'));
        prop_assert_eq!(&text.parse::<Number>().unwrap(), &number);
        let longer = format!("{text}{}{}", if text.contains('.') { "" } else { "." }, "0".repeat(zeros + 1));
        prop_assert_eq!(&longer.parse::<Number>().unwrap(), &number);
        let shifted = format!("{}e{zeros}", number.normal()).parse::<Number>().unwrap();
        prop_assert_eq!(&format!("{shifted}e-{zeros}").parse::<Number>().unwrap(), &number);
    }

    #[test]
    fn types_read_back_from_their_print(ty in types()) {
        let text = ty.to_string();
        prop_assert!(!text.contains(char::is_whitespace));
        prop_assert_eq!(text.parse::<Type>(), Ok(ty));
    }

    #[test]
    fn a_value_of_its_type_converts_and_stays_converted_across_the_wire((ty, value) in typed()) {
        let converted = validate(&ty, &value).map_err(|found| TestCaseError::fail(format!("{ty}: {found:?}")))?;
        let received = reads(&converted.to_json());
        prop_assert_eq!(validate(&ty, &received), Ok(converted));
    }

    #[test]
    fn a_value_of_any_other_type_converts_or_is_complained_about(ty in types(), value in values()) {
        match validate(&ty, &value) {
            Ok(converted) => prop_assert_eq!(validate(&ty, &converted), Ok(converted)),
            Err(complaints) => prop_assert!(!complaints.is_empty()),
        }
    }

    #[test]
    fn wrapped_values_of_any_come_out_as_they_went_in((ty, value) in typed()) {
        let attrs = Attrs::from([("a".to_owned(), AttrSchema::new(Type::Tuple(vec![ty])))]);
        let checked = attrs.check(&Members::from([("a".to_owned(), Value::from(vec![value]))])).unwrap();
        let wrapped = attrs.for_wire(checked.clone(), AnyEncoding::Cty);
        let ty = Type::Object([("a".to_owned(), Field { ty: attrs["a"].ty.clone(), optional: false })].into());
        let action = quartermaster_proto::provider::ActionSchema { outputs: Some(AttrSchema::new(ty)), ..Default::default() };
        prop_assert_eq!(action.read_outputs(wrapped, AnyEncoding::Cty), checked);
    }

    #[test]
    fn a_default_is_the_same_singly_and_doubly_encoded((ty, value) in typed()) {
        // Strings and `any` are told apart by their first character; that is shown as data.
        prop_assume!(!matches!(ty, Type::String | Type::Any));
        let read = |default: String| {
            let document = format!("{{\"name\":\"a\",\"protocol\":\"1\",\"config\":{{\"a\":{{\"type\":{},\"default\":{default}}}}}}}", Value::from(ty.to_string()).to_json());
            Schema::from_value(&reads(&document)).map(|read| read.value.config["a"].default.clone())
        };
        let single = read(value.to_json());
        prop_assert!(single.is_ok());
        prop_assert_eq!(single, read(Value::from(value.to_json()).to_json()));
    }

    #[test]
    fn a_schema_reads_back_from_what_is_written_of_it((ty, value) in typed(), required: bool, sensitive: bool) {
        let default = validate(&ty, &value).ok().filter(|value| !value.is_null());
        let attr = AttrSchema { required, sensitive, default, ..AttrSchema::new(ty) };
        let schema = Schema { name: "a".to_owned(), config: [("a".to_owned(), attr)].into(), ..Schema::default() };
        let again = Schema::from_value(&reads(&schema.to_value().to_json())).unwrap().value;
        prop_assert_eq!(again.digest(), schema.digest());
        prop_assert_eq!(again, schema);
    }

    #[test]
    fn requests_come_back_as_they_were_sent(id: i64, action in texts(), attrs in prop::collection::btree_map(texts(), values(), 0..4), undo: bool) {
        let call = Call::Execute(Execute { action, attrs, undo, context: None });
        let request = Request { id: CallId(id), call };
        let line = encode(&request, &Limits::PROVIDER).unwrap();
        prop_assert_eq!(std::str::from_utf8(&line).unwrap().chars().filter(|character| breaks_a_line(*character)).count(), 1);
        prop_assert_eq!(decode_incoming(&line, &Limits::PROVIDER), Ok(Incoming::Request(request)));
    }
}
