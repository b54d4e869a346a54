//! Collections: the items of all contributors as one text.

use std::collections::BTreeMap;

use quartermaster_proto::mesh::plan::CollectionPlan;

/// The text of a collection: items in the order of their contributors' names by bytes, each after a line that names its
/// contributor in the collection's comment, each ended by a line feed. No item, no text.
pub fn join(plan: &CollectionPlan, items: &BTreeMap<String, String>) -> String {
    let mut out = String::new();
    for (contributor, text) in items {
        if !plan.comment.is_empty() {
            out.extend([plan.comment.as_str(), " ", contributor]);
            if let Some(end) = &plan.comment_end {
                out.extend([" ", end]);
            }
            out.push('\n');
        }
        out.push_str(text);
        if !text.is_empty() && !text.ends_with('\n') {
            out.push('\n');
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(comment: &str, end: Option<&str>, items: &[(&str, &str)], expected: &str) {
        let plan = CollectionPlan {
            collection: "c".to_owned(),
            comment: comment.to_owned(),
            comment_end: end.map(str::to_owned),
        };
        let items = items.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
        assert_eq!(join(&plan, &items), expected);
    }

    #[test]
    fn items_stand_in_the_order_of_their_contributors_under_their_names() {
        check(
            "#",
            None,
            &[("forge", "b\n"), ("Blog", "a"), ("é", "c\n\n")],
            "# Blog\na\n# forge\nb\n# é\nc\n\n",
        );
        check("/*", Some("*/"), &[("forge", "b")], "/* forge */\nb\n");
        check("", None, &[("forge", "b"), ("a", "a")], "a\nb\n");
    }

    #[test]
    fn no_item_is_no_text_and_an_empty_item_only_its_name() {
        check("#", None, &[], "");
        check("#", None, &[("a", ""), ("b", "x")], "# a\n# b\nx\n");
    }
}
