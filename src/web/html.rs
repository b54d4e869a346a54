//! Markup that cannot be broken out of: templates are part of the program, everything put into them is escaped.

use std::fmt::{Display, Write as _};

/// Longest text put into a page in one place, in bytes; the rest is counted, not shown.
const MAX_TEXT: usize = 4 * 1024;

/// Finished markup.
#[derive(Debug, Default, Clone, PartialEq, Eq, Hash)]
pub(super) struct Html(String);

/// What can be put into a template.
pub(super) trait Show {
    /// Appends itself, escaped unless it is markup.
    fn show(&self, out: &mut String);
}

impl Show for Html {
    fn show(&self, out: &mut String) {
        out.push_str(&self.0);
    }
}

impl Show for str {
    fn show(&self, out: &mut String) {
        escape(self, out);
    }
}

impl Show for String {
    fn show(&self, out: &mut String) {
        escape(self, out);
    }
}

impl Show for &str {
    fn show(&self, out: &mut String) {
        escape(self, out);
    }
}

/// Numbers and other things that show themselves in plain characters; escaped all the same.
macro_rules! shown_as_text {
    ($($kind:ty),*) => {$(
        impl Show for $kind {
            fn show(&self, out: &mut String) {
                show_display(self, out);
            }
        }
    )*};
}
shown_as_text!(u32, u64, usize);

fn show_display(value: &dyn Display, out: &mut String) {
    escape(&value.to_string(), out);
}

impl<T: Show> Show for Option<T> {
    fn show(&self, out: &mut String) {
        if let Some(value) = self {
            value.show(out);
        }
    }
}

impl Html {
    /// A template with its values, as [`Html::put`].
    pub fn of(template: &'static str, values: &[&dyn Show]) -> Self {
        let mut html = Self::default();
        html.put(template, values);
        html
    }

    /// Appends a template in which each `{}` is replaced by the next value, escaped. Attribute values stand in double
    /// quotes in every template.
    pub fn put(&mut self, template: &'static str, values: &[&dyn Show]) {
        debug_assert_eq!(template.matches("{}").count(), values.len(), "{template}");
        let mut values = values.iter();
        let mut pieces = template.split("{}");
        self.0.push_str(pieces.next().unwrap_or_default());
        for piece in pieces {
            if let Some(value) = values.next() {
                value.show(&mut self.0);
            }
            self.0.push_str(piece);
        }
    }

    /// The markup as text.
    pub fn into_string(self) -> String {
        self.0
    }

    /// The markup as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// True for characters that could move a cursor, hide or reorder what is read: controls, separators, bidirectional marks.
fn is_harmful(c: char) -> bool {
    (c.is_control() && c != '\n')
        || matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// Appends `text` as text of a page or as an attribute's value in double quotes.
fn escape(text: &str, out: &mut String) {
    let end = (0..=MAX_TEXT.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or_default();
    let (shown, hidden) = text.split_at_checked(end).unwrap_or((text, ""));
    for c in shown.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\t' => out.push(' '),
            c if is_harmful(c) => {
                // Writing to a String cannot fail.
                let _ = write!(out, "\\u{{{:x}}}", c as u32);
            }
            c => out.push(c),
        }
    }
    if !hidden.is_empty() {
        let _ = write!(out, "… ({} bytes more)", hidden.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shows(text: &str, expected: &str) {
        assert_eq!(Html::of("<b title=\"{}\">", &[&text]).as_str(), format!("<b title=\"{expected}\">"));
    }

    #[test]
    fn markup_in_a_value_stays_text() {
        shows("<script>alert('1')</script>", "&lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt;");
        shows("\" onmouseover=\"x", "&quot; onmouseover=&quot;x");
        shows("a&lt;b", "a&amp;lt;b");
        shows("{}", "{}");
    }

    #[test]
    fn what_moves_cursors_or_reorders_text_is_spelled_out() {
        shows("a\u{1b}[2Jb\r\u{0}", "a\\u{1b}[2Jb\\u{d}\\u{0}");
        shows("user\u{202e}gpj.exe\u{2066}", "user\\u{202e}gpj.exe\\u{2066}");
        shows("\u{200b}\u{feff}\u{e0041}", "\\u{200b}\\u{feff}\\u{e0041}");
        shows("Zürich 東京", "Zürich 東京");
    }

    #[test]
    fn a_long_value_is_cut_between_characters() {
        let long = "é".repeat(MAX_TEXT);
        let html = Html::of("{}", &[&long]);
        assert_eq!(html.as_str(), format!("{}… ({MAX_TEXT} bytes more)", "é".repeat(MAX_TEXT / 2)));
    }

    #[test]
    fn markup_within_markup_is_kept() {
        let inner = Html::of("<i>{}</i>", &[&"<"]);
        assert_eq!(Html::of("<p>{}{}</p>", &[&inner, &7_u64]).as_str(), "<p><i>&lt;</i>7</p>");
    }
}
