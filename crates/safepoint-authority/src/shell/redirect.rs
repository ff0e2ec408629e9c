//! Redirections: files that are read, written or emptied by the shell itself.

use crate::deed::Role;

use super::actions::{DELETE, READ, SEND, WRITE};
use super::state::{Argument, State};
use super::syntax::{Redirect, RedirectKind};
use super::tilde::TildeContext;
use super::walk::{Input, Walker};

impl Walker<'_> {
    /// Follows a redirection. Tells what the command then reads from, if that changes.
    pub(super) fn redirect(
        &mut self,
        redirect: &Redirect,
        state: &mut State,
        nothing: bool,
    ) -> Option<Input> {
        let word = redirect.target.get()?.clone();
        self.visit(&word, state);
        let targets = self.expander(state).single(&word, TildeContext::Other);
        if redirect.kind == RedirectKind::Here {
            let text = match targets.as_slice() {
                [Argument::Known(text)] => Some(text.clone()),
                _ => None,
            };
            return Some(Input::Text(text));
        }
        let mut input = None;
        for target in &targets {
            let text = target.start();
            if let Some(rest) = text
                .strip_prefix("/dev/tcp/")
                .or_else(|| text.strip_prefix("/dev/udp/"))
            {
                let mut deed =
                    super::actions::deed(SEND, "the shell opens a connection".to_owned());
                if let Some(host) = rest.split('/').next() {
                    deed.hosts.insert(host.to_owned());
                }
                self.add(deed);
                continue;
            }
            match redirect.kind {
                RedirectKind::Duplicate
                    if target.known().is_some_and(|text| {
                        text == "-"
                            || text
                                .trim_end_matches('-')
                                .chars()
                                .all(|next| next.is_ascii_digit())
                    }) || matches!(target, Argument::Pattern { text, .. } if text == "*") => {}
                RedirectKind::Read => {
                    input = Some(match target.known() {
                        Some("/dev/null") => Input::Text(Some(String::new())),
                        _ => Input::File,
                    });
                    self.file(
                        READ,
                        &[(target.clone(), Role::Read)],
                        "a redirection reads",
                        state,
                    );
                }
                RedirectKind::Both => {
                    input = Some(Input::File);
                    self.file(
                        WRITE,
                        &[(target.clone(), Role::Write)],
                        "a redirection writes",
                        state,
                    );
                }
                RedirectKind::Write if nothing => {
                    self.file(
                        DELETE,
                        &[(target.clone(), Role::Delete)],
                        "a redirection empties the file",
                        state,
                    );
                }
                _ => {
                    self.file(
                        WRITE,
                        &[(target.clone(), Role::Write)],
                        "a redirection writes",
                        state,
                    );
                }
            }
        }
        input
    }
}
