//! Pages of what a command gives all at once, up to a limit.
//!
//! A cursor is how many were shown, and the last of them: what came new in front of it since
//! moves it, and is not shown twice.

use serde_json::Value;

use crate::commands::form::LARGEST_PAGE;

/// How many are on a page where nobody says so.
const USUAL: u64 = 100;

/// How many may have come in front meanwhile.
const SLACK: u64 = 200;

/// A page that is asked for.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Wanted {
    limit: u64,
    shown: u64,
    last: Option<String>,
}

impl Wanted {
    pub(super) fn new(limit: Option<u64>, cursor: Option<&str>) -> Self {
        let (shown, last) = match cursor.map(|it| it.split_once('.').unwrap_or((it, ""))) {
            None => (0, None),
            Some((shown, last)) => (
                shown.parse().unwrap_or(0),
                Some(last.to_owned()).filter(|last| !last.is_empty()),
            ),
        };
        Self {
            limit: limit.unwrap_or(USUAL).clamp(1, LARGEST_PAGE),
            shown,
            last,
        }
    }

    /// How many the page has.
    pub(super) fn limit(&self) -> u64 {
        self.limit
    }

    /// The place from which it goes on.
    pub(super) fn place(&self) -> u64 {
        self.shown
    }

    /// How many the command is asked for.
    pub(super) fn enough(&self) -> u32 {
        let most = self.shown.saturating_add(self.limit).saturating_add(1);
        let most = match self.last {
            None => most,
            Some(_) => most.saturating_add(SLACK),
        };
        u32::try_from(most).unwrap_or(u32::MAX)
    }

    /// Cuts the page out of the document, and says where the next one begins.
    pub(super) fn cut(&self, document: &mut Value, field: &str, id: &str) -> Option<String> {
        let items = document.get_mut(field)?.as_array_mut()?;
        let known = |item: &Value| item.get(id).and_then(Value::as_str).map(str::to_owned);
        let last = self.last.as_ref();
        let found =
            last.and_then(|last| items.iter().position(|it| known(it).as_ref() == Some(last)));
        let start = match found {
            Some(place) => place + 1,
            // It is gone: what comes after as many as were shown is the best guess.
            None => usize::try_from(self.shown).unwrap_or(usize::MAX),
        };
        let limit = usize::try_from(self.limit).unwrap_or(usize::MAX);
        let more = items.len() > start.saturating_add(limit);
        *items = std::mem::take(items)
            .into_iter()
            .skip(start)
            .take(limit)
            .collect();
        let last = items.last().and_then(known);
        let next = last
            .filter(|_| more)
            .map(|last| format!("{}.{last}", start + items.len()));
        // The command was asked for more than the page has: what it says comes next is not so.
        if let Some(said) = document.get_mut("next") {
            *said = next.as_deref().into();
        }
        next
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn document(ids: &[&str]) -> Value {
        let items: Vec<Value> = ids.iter().map(|id| json!({ "id": id })).collect();
        json!({ "items": items })
    }

    #[test]
    fn su_07_pages_have_everything_once_while_others_come_in_front() {
        let wanted = Wanted::new(Some(2), None);
        assert_eq!(wanted.enough(), 3);
        let mut page = document(&["e", "d", "c"]);
        let next = wanted.cut(&mut page, "items", "id").unwrap();
        assert_eq!((page, next.as_str()), (document(&["e", "d"]), "2.d"));
        // Two newer ones have come.
        let wanted = Wanted::new(Some(2), Some(&next));
        let mut page = document(&["g", "f", "e", "d", "c", "b", "a"]);
        let next = wanted.cut(&mut page, "items", "id").unwrap();
        assert_eq!((page, next.as_str()), (document(&["c", "b"]), "6.b"));
        // What was shown last is gone.
        let wanted = Wanted::new(Some(2), Some("2.x"));
        let mut page = document(&["c", "b", "a"]);
        assert_eq!(wanted.cut(&mut page, "items", "id"), None);
        assert_eq!(page, document(&["a"]));
    }
}
