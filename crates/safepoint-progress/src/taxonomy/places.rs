//! Where values stand in a text: only to say so. What a taxonomy means is decided by its types.

use std::collections::HashMap;

use granit_parser::{Event, Parser, Span};

/// JSON Pointer → line and column, both from 1.
pub(super) type Places = HashMap<String, (usize, usize)>;

/// A list or mapping that has not ended.
struct Open {
    pointer: String,
    items: usize,
    /// In a mapping: whether a key comes next, and the last key.
    key: Option<String>,
    is_map: bool,
}

/// The places of all values in `text`, as far as it can be parsed.
pub(super) fn of(text: &str) -> Places {
    let mut places = Places::new();
    let mut open: Vec<Open> = Vec::new();
    for event in Parser::new_from_str(text) {
        let Ok((event, span)) = event else {
            break;
        };
        let (key, is_map) = match event {
            Event::Scalar(text, ..) => (Some(text.into_owned()), None),
            Event::Alias(_) => (None, None),
            Event::SequenceStart(..) => (None, Some(false)),
            Event::MappingStart(..) => (None, Some(true)),
            Event::SequenceEnd | Event::MappingEnd => {
                open.pop();
                continue;
            }
            _ => continue,
        };
        let Some(pointer) = pointer(&mut open, key) else {
            continue; // a key
        };
        places.insert(pointer.clone(), place(&span));
        if let Some(is_map) = is_map {
            open.push(Open {
                pointer,
                items: 0,
                key: None,
                is_map,
            });
        }
    }
    places
}

/// The pointer of the value that begins now; `None` when it is a key.
fn pointer(open: &mut [Open], key: Option<String>) -> Option<String> {
    let Some(around) = open.last_mut() else {
        return Some(String::new());
    };
    if !around.is_map {
        around.items += 1;
        return Some(format!("{}/{}", around.pointer, around.items - 1));
    }
    match around.key.take() {
        Some(key) => Some(format!("{}/{}", around.pointer, escaped(&key))),
        None => {
            around.key = Some(key.unwrap_or_default());
            None
        }
    }
}

fn escaped(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

fn place(span: &Span) -> (usize, usize) {
    (span.start.line(), span.start.col() + 1)
}

/// The place of the value at `pointer`, or of the nearest one around it.
pub(super) fn nearest(places: &Places, mut pointer: &str) -> Option<(usize, usize)> {
    loop {
        if let Some(place) = places.get(pointer) {
            return Some(*place);
        }
        pointer = pointer.rsplit_once('/')?.0;
    }
}
