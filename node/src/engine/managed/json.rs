//! JSON, leaf by leaf. Values that are not ours keep their text, digits included; the order of members stays.

use std::fmt;

use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use zeroize::Zeroizing;

use super::error::Text;
use super::gone::Gone;
use super::lines::Buffer;
use super::{Keys, ManagedError};

const FORMAT: &str = "a JSON object";
/// Deepest nesting that is followed.
const MAX_DEPTH: usize = 64;
/// How a file is indented that shows no indentation of its own.
const INDENT: &str = "  ";

/// A value: objects are followed, everything else is a leaf with its text.
#[derive(Debug, Clone, PartialEq)]
enum Node {
    Object(Vec<(String, Node)>),
    Leaf(Zeroizing<String>),
}

/// The members of one object, in their order.
struct Members<'a>(Vec<(String, &'a RawValue)>);

impl<'de> serde::Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Members<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<'de>, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(InOrder)
    }
}

fn object(text: Text, json: &str, depth: usize) -> Result<Vec<(String, Node)>, ManagedError> {
    let refuse = |detail, line| ManagedError::unreadable(text, FORMAT, detail, line);
    if depth > MAX_DEPTH {
        return Err(refuse("it is nested too deep", 1));
    }
    let members: Members<'_> =
        serde_json::from_str(json).map_err(|error| refuse("it does not parse", error.line().max(1)))?;
    let mut nodes: Vec<(String, Node)> = Vec::new();
    for (key, value) in members.0 {
        if nodes.iter().any(|(other, _)| *other == key) {
            return Err(refuse("a member stands twice", 1));
        }
        let node = if value.get().starts_with('{') {
            Node::Object(object(text, value.get(), depth + 1)?)
        } else {
            Node::Leaf(Zeroizing::new(value.get().to_owned()))
        };
        nodes.push((key, node));
    }
    Ok(nodes)
}

fn parse(text: Text, bytes: &[u8]) -> Result<Node, ManagedError> {
    let json = std::str::from_utf8(bytes)
        .map_err(|_| ManagedError::unreadable(text, FORMAT, "bytes that are no UTF-8", 1))?;
    if text == Text::Target && json.trim().is_empty() {
        return Ok(Node::Object(Vec::new()));
    }
    Ok(Node::Object(object(text, json, 0)?))
}

impl Node {
    fn members(&mut self) -> Option<&mut Vec<(String, Self)>> {
        match self {
            Self::Object(members) => Some(members),
            Self::Leaf(_) => None,
        }
    }

    fn get(&mut self, key: &str) -> Option<&mut Self> {
        self.members()?.iter_mut().find(|(name, _)| name == key).map(|(_, node)| node)
    }

    fn at(&mut self, path: &[String]) -> Option<&mut Self> {
        path.iter().try_fold(self, |node, part| node.get(part))
    }

    /// Removes what `path` names, if `may` says so.
    fn remove(&mut self, path: &[String], may: impl Fn(&Self) -> bool) {
        let Some((last, way)) = path.split_last() else { return };
        if let Some(members) = self.at(way).and_then(Self::members) {
            members.retain(|(name, node)| name != last || !may(node));
        }
    }

    fn is_empty_object(&self) -> bool {
        matches!(self, Self::Object(members) if members.is_empty())
    }

    fn leaves(&self, at: &[String], out: &mut Vec<(Vec<String>, Self)>) {
        match self {
            Self::Object(members) if !members.is_empty() => {
                for (key, node) in members {
                    let path: Vec<String> = at.iter().cloned().chain([key.clone()]).collect();
                    node.leaves(&path, out);
                }
            }
            leaf if !at.is_empty() => out.push((at.to_vec(), leaf.clone())),
            _ => {}
        }
    }

    fn set(&mut self, path: &[String], leaf: &Self) -> Result<Vec<Vec<String>>, ManagedError> {
        let other_kind = || {
            ManagedError::unreadable(
                Text::Target,
                FORMAT,
                "one of our keys is an object on one side alone",
                1,
            )
        };
        let (mut made, mut node) = (Vec::new(), self);
        let Some((last, way)) = path.split_last() else { return Ok(made) };
        for (depth, part) in way.iter().enumerate() {
            let members = node.members().ok_or_else(other_kind)?;
            if !members.iter().any(|(name, _)| name == part) {
                members.push((part.clone(), Self::Object(Vec::new())));
                made.push(path.iter().take(depth + 1).cloned().collect());
            }
            node = node.get(part).ok_or_else(other_kind)?;
        }
        let members = node.members().ok_or_else(other_kind)?;
        match members.iter_mut().find(|(name, _)| name == last) {
            Some((_, old)) if matches!(old, Self::Leaf(_)) == matches!(leaf, Self::Leaf(_)) => {
                if matches!(leaf, Self::Leaf(_)) {
                    *old = leaf.clone();
                }
            }
            Some(_) => return Err(other_kind()),
            None => members.push((last.clone(), leaf.clone())),
        }
        Ok(made)
    }

    fn print(&self, layout: &Layout, depth: usize, out: &mut Buffer) {
        let members = match self {
            Self::Leaf(text) => return out.push(text.as_bytes()),
            Self::Object(members) if members.is_empty() => return out.push(b"{}"),
            Self::Object(members) => members,
        };
        out.push(b"{");
        for (at, (key, node)) in members.iter().enumerate() {
            if at > 0 {
                out.push(b",");
            }
            layout.new_line(depth + 1, out);
            out.push(serde_json::Value::from(key.as_str()).to_string().as_bytes());
            out.push(if layout.indent.is_some() { b": ".as_slice() } else { b":" });
            node.print(layout, depth + 1, out);
        }
        layout.new_line(depth, out);
        out.push(b"}");
    }
}

/// How a file is laid out.
struct Layout {
    /// None for a file in one line.
    indent: Option<String>,
    ending: &'static str,
    ends_with_line: bool,
}

impl Layout {
    fn of(text: &str) -> Self {
        let ending = if text.contains("\r\n") { "\r\n" } else { "\n" };
        let trimmed = text.trim();
        let first = text.lines().skip(1).find(|line| !line.trim().is_empty());
        let indent = match first {
            Some(line) => {
                let indent: String = line.chars().take_while(|c| *c == ' ' || *c == '\t').collect();
                Some(if indent.is_empty() { INDENT.to_owned() } else { indent })
            }
            None if trimmed.len() > 2 => None,
            None => Some(INDENT.to_owned()),
        };
        Self { indent, ending, ends_with_line: trimmed.is_empty() || text.ends_with('\n') }
    }

    fn new_line(&self, depth: usize, out: &mut Buffer) {
        if let Some(indent) = &self.indent {
            out.push(self.ending.as_bytes());
            out.push(indent.repeat(depth).as_bytes());
        }
    }

    fn print(&self, root: &Node) -> Vec<u8> {
        let mut out = Buffer::default();
        root.print(self, 0, &mut out);
        if self.ends_with_line {
            out.push(self.ending.as_bytes());
        }
        out.take()
    }
}

fn remove(root: &mut Node, gone: &Gone) {
    for path in &gone.leaves {
        root.remove(path, |node| matches!(node, Node::Leaf(_)));
    }
    for path in gone.containers.iter().rev() {
        root.remove(path, Node::is_empty_object);
    }
}

pub(super) fn merge(target: &[u8], fragment: &[u8], before: &Keys) -> Result<(Vec<u8>, Keys), ManagedError> {
    let wanted = {
        let mut wanted = Vec::new();
        parse(Text::Fragment, fragment)?.leaves(&[], &mut wanted);
        wanted
    };
    let as_it_was = parse(Text::Target, target)?;
    let mut root = as_it_was.clone();
    let is_container = |leaf: &Node| matches!(leaf, Node::Object(_));
    let (gone, mut ours) =
        Gone::of(before, wanted.iter().map(|(path, leaf)| (path.as_slice(), is_container(leaf))));
    remove(&mut root, &gone);
    for (path, leaf) in &wanted {
        ours.extend(root.set(path, leaf)?);
    }
    let is_written = !target.iter().all(u8::is_ascii_whitespace);
    if root == as_it_was && is_written {
        return Ok((target.to_vec(), ours));
    }
    Ok((layout(target).print(&root), ours))
}

pub(super) fn withdraw(target: &[u8], ours: &Keys) -> Result<Vec<u8>, ManagedError> {
    let as_it_was = parse(Text::Target, target)?;
    let mut root = as_it_was.clone();
    remove(&mut root, &Gone::all(ours));
    if root == as_it_was {
        return Ok(target.to_vec());
    }
    Ok(layout(target).print(&root))
}

fn layout(target: &[u8]) -> Layout {
    Layout::of(std::str::from_utf8(target).unwrap_or_default())
}
