//! What somebody may have meant who wrote a name that is not there.

/// Longest names that are compared, in characters.
const LONGEST: usize = 256;

/// The name among the known that is most like this one; none when none is like it. Another case alone is always like it, and so are
/// two slips of the hand in a longer name, one in a short one.
///
/// ```
/// use quartermaster_node::near::near;
/// let known = ["http.port", "title"];
/// assert_eq!(near("Titel", known), Some("title"));
/// assert_eq!(near("HTTP.port", known), Some("http.port"));
/// assert_eq!(near("colour", known), None);
/// ```
pub fn near<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let lower = name.to_lowercase();
    let most = if lower.chars().count() <= 4 { 1 } else { 2 };
    known
        .into_iter()
        .filter(|known| *known != name)
        .map(|known| (edits(&lower, &known.to_lowercase()), known))
        .filter(|(edits, _)| *edits <= most)
        .min()
        .map(|(_, known)| known)
}

/// How many characters are written otherwise, too many, missing or exchanged with their neighbour.
fn edits(left: &str, right: &str) -> usize {
    let (left, right): (Vec<char>, Vec<char>) =
        (left.chars().take(LONGEST).collect(), right.chars().take(LONGEST).collect());
    // Each row from the one before, and the exchange of neighbours from the one before that.
    let mut older: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=right.len()).collect();
    for (row, one) in left.iter().enumerate() {
        let mut next = Vec::with_capacity(last.len());
        next.push(row + 1);
        for (column, other) in right.iter().enumerate() {
            let at = |row: &[usize], column: usize| row.get(column).copied().unwrap_or(LONGEST);
            let mut best = (at(&last, column) + usize::from(one != other))
                .min(at(&last, column + 1) + 1)
                .min(at(&next, column) + 1);
            let before = (row.checked_sub(1).and_then(|row| left.get(row)), column.checked_sub(1));
            if let (Some(earlier), Some(neighbour)) = before
                && earlier == other
                && right.get(neighbour) == Some(one)
            {
                best = best.min(at(&older, neighbour) + 1);
            }
            next.push(best);
        }
        older = std::mem::replace(&mut last, next);
    }
    last.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_are_counted() {
        for (left, right, count) in [
            ("", "", 0),
            ("", "abc", 3),
            ("abc", "", 3),
            ("title", "title", 0),
            ("titel", "title", 1),
            ("tilte", "title", 1),
            ("titl", "title", 1),
            ("port", "part", 1),
            ("kitten", "sitting", 3),
        ] {
            assert_eq!(edits(left, right), count, "{left} {right}");
        }
    }

    #[test]
    fn the_nearest_is_taken_and_nothing_that_is_far() {
        let known = ["pw", "password", "passwords", "Port"];
        for (name, found) in [
            ("PW", Some("pw")),
            ("pasword", Some("password")),
            ("port", Some("Port")),
            ("x", None),
            ("user", None),
            ("pw", None),
        ] {
            assert_eq!(near(name, known), found, "{name}");
        }
    }
}
