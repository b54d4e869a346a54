//! TOML, key by key, with comments and layout kept. What the library reads a text into is freed without being wiped, which
//! docs/node.md says; our own copies are wiped.

use toml_edit::{DocumentMut, Item, Table, TableLike, Value};
use zeroize::Zeroizing;

use super::error::Text;
use super::gone::Gone;
use super::lines::{Buffer, bare, ending, lines, push_lines};
use super::{Keys, ManagedError};

const FORMAT: &str = "TOML";

fn parse(text: Text, bytes: &[u8]) -> Result<DocumentMut, ManagedError> {
    let line_of = |at: usize| bytes.iter().take(at).filter(|byte| **byte == b'\n').count() + 1;
    let string = std::str::from_utf8(bytes).map_err(|error| {
        ManagedError::unreadable(text, FORMAT, "bytes that are no UTF-8", line_of(error.valid_up_to()))
    })?;
    string.parse::<DocumentMut>().map_err(|error| {
        let line = line_of(error.span().map_or(0, |span| span.start));
        ManagedError::unreadable(text, FORMAT, "it does not parse", line)
    })
}

/// The document as bytes with this line ending.
fn render(document: &DocumentMut, ending: &[u8]) -> Vec<u8> {
    let mut text = Zeroizing::new(document.to_string());
    if ending == b"\n" {
        return std::mem::take(&mut *text).into_bytes();
    }
    let mut out = Buffer::with_room(text.len() * 2);
    push_lines(&mut out, text.as_bytes(), ending);
    out.take()
}

/// The target, if it would come out of an edit as it went in.
fn target(bytes: &[u8]) -> Result<DocumentMut, ManagedError> {
    let document = parse(Text::Target, bytes)?;
    let again = Zeroizing::new(render(&document, ending(bytes)));
    let same = lines(bytes).iter().zip(lines(&again)).position(|(a, b)| a != &b && bare(a) != bare(b));
    let mixed = lines(bytes).iter().rev().skip(1).any(|line| !line.ends_with(ending(bytes)));
    if let Some(at) = same {
        let detail = "its layout could not be kept";
        return Err(ManagedError::unreadable(Text::Target, FORMAT, detail, at + 1));
    }
    if mixed {
        let detail = "its lines end in two ways";
        return Err(ManagedError::unreadable(Text::Target, FORMAT, detail, 1));
    }
    Ok(document)
}

/// Every leaf of a table with its path, and every table on the way to one.
fn leaves(table: &dyn TableLike, at: &[String], out: &mut Vec<(Vec<String>, Item)>) {
    for (key, item) in table.iter() {
        let path: Vec<String> = at.iter().cloned().chain([key.to_owned()]).collect();
        match item {
            Item::Table(inner) if !inner.is_empty() => leaves(inner, &path, out),
            Item::Value(Value::InlineTable(inner)) if inner.is_dotted() => leaves(inner, &path, out),
            Item::None => {}
            leaf => out.push((path, leaf.clone())),
        }
    }
}

/// The table that holds the last part of `path`, and that part.
fn holder<'a, 'p>(
    document: &'a mut DocumentMut,
    path: &'p [String],
) -> Option<(&'a mut dyn TableLike, &'p str)> {
    let (last, way) = path.split_last()?;
    let mut table: &mut dyn TableLike = document.as_table_mut();
    for part in way {
        table = table.get_mut(part)?.as_table_like_mut()?;
    }
    Some((table, last))
}

fn plain(item: &Item) -> String {
    let mut item = item.clone();
    if let Some(value) = item.as_value_mut() {
        value.decor_mut().clear();
    }
    item.to_string()
}

fn set(document: &mut DocumentMut, path: &[String], leaf: &Item) -> Result<Vec<Vec<String>>, ManagedError> {
    let other_kind =
        || ManagedError::unreadable(Text::Target, FORMAT, "one of our keys is a table on one side alone", 1);
    let mut made = Vec::new();
    let mut table: &mut dyn TableLike = document.as_table_mut();
    let Some((last, way)) = path.split_last() else { return Ok(made) };
    for (depth, part) in way.iter().enumerate() {
        if table.get(part).is_none_or(Item::is_none) {
            let mut inner = Table::new();
            inner.set_implicit(true);
            table.insert(part, Item::Table(inner));
            made.push(path.iter().take(depth + 1).cloned().collect());
        }
        table = table.get_mut(part).and_then(Item::as_table_like_mut).ok_or_else(other_kind)?;
    }
    let mut leaf = leaf.clone();
    if let Some(tables) = leaf.as_array_of_tables_mut() {
        tables.iter_mut().for_each(|table| table.set_position(None));
    }
    if let Some(inner) = leaf.as_table_mut() {
        inner.set_position(None);
    }
    match table.get_mut(last) {
        Some(old) if old.is_table_like() && old.as_inline_table().is_none() => {
            if !leaf.is_table() {
                return Err(other_kind());
            }
        }
        Some(old) if *Zeroizing::new(plain(old)) == *Zeroizing::new(plain(&leaf)) => {}
        Some(old) => {
            if let (Some(old), Some(new)) = (old.as_value(), leaf.as_value_mut()) {
                *new.decor_mut() = old.decor().clone();
            }
            *old = leaf;
        }
        None => {
            if let Some(value) = leaf.as_value_mut() {
                value.decor_mut().clear();
            }
            if leaf.is_table() {
                made.push(path.to_vec());
            }
            table.insert(last, leaf);
        }
    }
    Ok(made)
}

/// Removes leaves that are ours no more, and then, deepest first, the tables we made and that are empty.
fn remove(document: &mut DocumentMut, gone: &Gone) {
    for path in &gone.leaves {
        if let Some((table, key)) = holder(document, path)
            && table.get(key).is_some_and(|item| !item.is_table())
        {
            table.remove(key);
        }
    }
    for path in gone.containers.iter().rev() {
        if let Some((table, key)) = holder(document, path)
            && table.get(key).and_then(Item::as_table).is_some_and(Table::is_empty)
        {
            table.remove(key);
        }
    }
}

pub(super) fn merge(bytes: &[u8], fragment: &[u8], before: &Keys) -> Result<(Vec<u8>, Keys), ManagedError> {
    let fragment = parse(Text::Fragment, fragment)?;
    let mut document = target(bytes)?;
    let mut wanted = Vec::new();
    leaves(fragment.as_table(), &[], &mut wanted);
    let is_container = |item: &Item| item.is_table();
    let (gone, mut ours) =
        Gone::of(before, wanted.iter().map(|(path, leaf)| (path.as_slice(), is_container(leaf))));
    let as_it_was = Zeroizing::new(document.to_string());
    remove(&mut document, &gone);
    for (path, leaf) in &wanted {
        ours.extend(set(&mut document, path, leaf)?);
    }
    if *Zeroizing::new(document.to_string()) == *as_it_was {
        return Ok((bytes.to_vec(), ours));
    }
    Ok((render(&document, ending(bytes)), ours))
}

pub(super) fn withdraw(bytes: &[u8], ours: &Keys) -> Result<Vec<u8>, ManagedError> {
    let mut document = target(bytes)?;
    remove(&mut document, &Gone::all(ours));
    Ok(render(&document, ending(bytes)))
}
