//! Numbers, digit for digit.

use quartermaster_proto::provider::{Number, NumberError};

use super::support::json;

/// What a number's text becomes on the wire, and its normal form.
fn check(text: &str, written: &str, normal: &str) {
    assert_eq!(json(text).to_json(), written, "{text}");
    assert_eq!(*json(text).to_canonical(), normal, "{text}");
    assert_eq!(json(written), json(text), "{text} is the same value after the round trip");
}

fn same(text: &str) {
    check(text, text, text);
}

#[test]
fn digits_survive_that_a_float_would_lose() {
    same("9223372036854775808");
    same("-9223372036854775809");
    same("18446744073709551616");
    same("0.1");
    same("123456789012345678901234567890");
    same("0.123456789012345678901234567891");
    same("-123456789012345678901234567890.000000000000000000001");
}

#[test]
fn an_exponent_is_written_out() {
    check("1e400", &format!("1{}", "0".repeat(400)), &format!("1{}", "0".repeat(400)));
    check("1E+3", "1000", "1000");
    check("25e-1", "2.5", "2.5");
    check("1e-5", "0.00001", "0.00001");
    check("-1.5e1", "-15", "-15");
    check("0.001e1", "0.01", "0.01");
    check("0.05e2", "5", "5");
    check("123.456e2", "12345.6", "12345.6");
    check("1.50e0", "1.50", "1.5");
    check("0e99999999999999999999", "0", "0");
    check("-0.0e5", "0", "0");
}

#[test]
fn equal_numbers_have_one_normal_form_and_keep_their_own_digits() {
    check("1.50", "1.50", "1.5");
    check("1.0", "1.0", "1");
    check("-0", "-0", "0");
    check("-0.00", "-0.00", "0");
    assert_eq!(json("100"), json("1e2"));
    assert_eq!(json("-0"), json("0.0"));
    assert_ne!(json("0.1"), json("0.10000000000000000001"));
}

#[test]
fn an_exponent_that_stands_for_endless_zeros_is_refused() {
    for text in
        ["1e4097", "1e-5000", "1e99999999999999999999", "1e-99999999999999999999", "-9e9223372036854775807"]
    {
        assert_eq!(text.parse::<Number>(), Err(NumberError::Exponent), "{text}");
    }
    assert_eq!("1e4096".parse::<Number>().unwrap().as_str().len(), 4_097);
    assert!("1e-4096".parse::<Number>().is_ok());
}

#[test]
fn only_the_grammar_of_json_is_a_number() {
    for text in [
        "",
        "-",
        "+1",
        "01",
        "-01",
        ".5",
        "5.",
        "1e",
        "1e+",
        "1e1.5",
        "0x10",
        "1_000",
        "NaN",
        "Infinity",
        "-Infinity",
        " 1",
        "1 ",
        "٣",
    ] {
        assert_eq!(text.parse::<Number>(), Err(NumberError::Syntax), "{text}");
    }
}

#[test]
fn whole_numbers_fit_or_do_not() {
    let number = |text: &str| text.parse::<Number>().unwrap();
    assert_eq!(number("-9223372036854775808").as_i64(), Some(i64::MIN));
    assert_eq!(number("9223372036854775808").as_i64(), None);
    assert_eq!(number("18446744073709551615").as_u64(), Some(u64::MAX));
    assert_eq!(number("2.0").as_u64(), Some(2));
    assert_eq!((number("2.5").as_u64(), number("-1").as_u64()), (None, None));
}

#[test]
fn a_float_becomes_its_shortest_decimal_and_what_is_not_finite_is_refused() {
    let number = |float: f64| Number::try_from(float).map(|number| number.to_string());
    assert_eq!(number(0.1), Ok("0.1".to_owned()));
    assert_eq!(number(1e21), Ok("1000000000000000000000".to_owned()));
    for float in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        assert_eq!(number(float), Err(NumberError::NotFinite));
    }
}

#[test]
fn a_number_that_may_be_secret_is_not_in_its_debug_text() {
    assert_eq!(format!("{:?} {:?}", Number::from(4711_i64), json("4711")), "Number(4 characters) number");
}
