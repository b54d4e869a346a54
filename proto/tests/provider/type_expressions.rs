//! The grammar of type expressions and their canonical print.

use quartermaster_proto::provider::{MAX_TYPE_DEPTH, Type};

use super::support::ty;

/// What an expression is printed as; the print reads back as itself.
fn prints(text: &str, canonical: &str) {
    assert_eq!(ty(text).to_string(), canonical, "{text}");
    assert_eq!(ty(canonical), ty(text), "{text}");
}

fn refuses(text: &str, message: &str) {
    let error = text.parse::<Type>().unwrap_err();
    assert_eq!(error.to_string(), message, "{text}");
}

#[test]
fn every_form_is_read_and_printed_without_blanks_and_sorted() {
    for plain in ["string", "number", "bool", "any"] {
        prints(plain, plain);
    }
    prints("list( string )", "list(string)");
    prints("set(number)", "set(number)");
    prints("map (any)", "map(any)");
    prints("tuple([string, number ,bool])", "tuple([string,number,bool])");
    prints("tuple([])", "tuple([])");
    prints("object({})", "object({})");
    prints(
        "object({ status = number, headers = map(string), body = string })",
        "object({body=string,headers=map(string),status=number})",
    );
    prints("object({a=optional(list(string))})", "object({a=optional(list(string))})");
    prints("list(map(set(tuple([object({a=any})]))))", "list(map(set(tuple([object({a=any})]))))");
}

#[test]
fn blanks_and_line_breaks_are_free_between_tokens() {
    prints("  \t\r\n list\n(\n string\n )\n", "list(string)");
    prints("tuple(\n[\n string\n ,\n number\n ]\n)", "tuple([string,number])");
}

#[test]
fn fields_are_separated_by_commas_or_line_breaks() {
    prints("object({b=number\n a=string})", "object({a=string,b=number})");
    prints("object({\n  b: number\n  a: string,\n})", "object({a=string,b=number})");
    prints("object({a=string\n,b=number,})", "object({a=string,b=number})");
    prints("tuple([string,])", "tuple([string])");
    refuses("object({a=string b=number})", "`,` or `}` is missing at column 18");
    refuses("object({,})", "a field's name is missing at column 9");
    refuses("object({a=string,,b=number})", "a field's name is missing at column 18");
    refuses("tuple([string\nnumber])", "`]` is missing at column 15");
    refuses("tuple([,])", "a type is missing at column 8");
}

#[test]
fn names_are_letters_digits_underscores_and_hyphens() {
    prints("object({_a-1=string})", "object({_a-1=string})");
    prints("object({größe=string})", "object({größe=string})");
    prints(
        "object({string=string,optional=optional(bool)})",
        "object({optional=optional(bool),string=string})",
    );
    refuses("object({1a=string})", "a field's name is missing at column 9");
    refuses("object({-a=string})", "a field's name is missing at column 9");
    refuses("object({\"a\"=string})", "a field's name is missing at column 9");
    refuses("object({a=string,a=number})", "field `a` stands twice at column 18");
}

#[test]
fn what_is_wrong_is_named_with_its_column() {
    refuses("", "a type is missing at column 1");
    refuses("strin", "unknown type `strin` at column 1");
    refuses("list(strin)", "unknown type `strin` at column 6");
    refuses("list", "`(` is missing at column 5");
    refuses("list()", "a type is missing at column 6");
    refuses("list(string", "`)` is missing at column 12");
    refuses("list(string,number)", "`)` is missing at column 12");
    refuses("map(string, string)", "`)` is missing at column 11");
    refuses("string)", "text after the type at column 7");
    refuses("string number", "text after the type at column 8");
    refuses("object({a string})", "`=` is missing at column 11");
    refuses("object(a=string)", "`{` is missing at column 8");
    refuses("tuple(string)", "`[` is missing at column 7");
    refuses("object({a=optional(string, \"x\")})", "`)` is missing at column 26");
    refuses("object({ü=strin})", "unknown type `strin` at column 11");
    refuses("li\u{1b}[31mst", "unknown type `li` at column 1");
}

#[test]
fn optional_stands_only_for_a_field() {
    refuses("optional(string)", "`optional` stands only for a field of an object at column 1");
    refuses("list(optional(string))", "`optional` stands only for a field of an object at column 6");
    refuses(
        "object({a=optional(optional(string))})",
        "`optional` stands only for a field of an object at column 20",
    );
}

#[test]
fn words_are_not_cut_into_types() {
    refuses("strings", "unknown type `strings` at column 1");
    refuses("String", "unknown type `String` at column 1");
    refuses("any-thing", "unknown type `any-thing` at column 1");
}

#[test]
fn nesting_has_its_limit() {
    let nested = |depth: usize| format!("{}any{}", "list(".repeat(depth - 1), ")".repeat(depth - 1));
    assert!(nested(MAX_TYPE_DEPTH).parse::<Type>().is_ok());
    refuses(&nested(MAX_TYPE_DEPTH + 1), "a type nested deeper than 64 levels at column 321");
    assert!("object({a=".repeat(200_000).parse::<Type>().is_err());
    let optional = format!("{}any{}", "object({a=optional(".repeat(63), ")})".repeat(63));
    assert!(optional.parse::<Type>().is_ok(), "`optional` is no level of its own");
}
