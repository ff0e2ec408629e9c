//! What is around every page: the menu, the way past it, and who is signed in.

use axum::response::{Html, IntoResponse, Response};
use maud::{DOCTYPE, Markup, html};
use safepoint_model::text as safe;
use serde::Deserialize;

use super::ask::Words;
use super::form;
use super::show::text;
use super::trouble::Trouble;
use super::visit::Visitor;

/// Where in the menu a page is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Here {
    Inbox,
    Sessions,
    Checkpoints,
    Workspaces,
    Trail,
    Rules,
    Status,
}

/// The menu: where, the address, the word, and the key that follows `g`.
const MENU: [(Here, &str, &str, &str); 7] = [
    (Here::Inbox, "/", "Inbox", "i"),
    (Here::Sessions, "/sessions", "Sessions", "s"),
    (Here::Checkpoints, "/checkpoints", "Checkpoints", "c"),
    (Here::Workspaces, "/workspaces", "Workspaces", "w"),
    (Here::Trail, "/trail", "Trail", "t"),
    (Here::Rules, "/rules", "Rules", "r"),
    (Here::Status, "/status", "Status", "u"),
];

#[derive(Deserialize)]
struct Waiting {
    total: usize,
}

impl Visitor {
    /// A whole page.
    pub(super) async fn sheet(
        &self,
        here: Here,
        title: &str,
        body: Markup,
    ) -> Result<Response, Trouble> {
        // Somebody who must not see what waits sees a menu without a number.
        let waiting = self
            .ask::<Waiting>(Words::new(&["hold", "list", "--limit=1"]))
            .await;
        let waiting = waiting.map_or(0, |waiting| waiting.total);
        let menu = html! {
            nav.menu aria-label="Pages" {
                @for (place, address, word, key) in MENU {
                    @let current = (place == here).then_some("page");
                    a href=(address) aria-current=[current] data-go=(key) {
                        (word)
                        @if place == Here::Inbox {
                            span id="waiting" data-live {
                                @if waiting > 0 {
                                    " " span.count { (waiting) }
                                    span.unseen { " waiting" }
                                }
                            }
                        }
                    }
                }
            }
            div.who {
                span.name { (text(&self.caller.name)) }
                form method="post" action="/sign-out" {
                    (form::mark(self))
                    button.quiet type="submit" { "Sign out" }
                }
            }
        };
        let now = self.now().to_string();
        let page = whole(title, &menu, &body, Some(&now));
        Ok(Html(page.into_string()).into_response())
    }
}

/// A page for which nothing more can be asked. The menu leads on, or to the sign-in.
pub(super) fn astray(title: &str, body: &Markup) -> Markup {
    let menu = html! {
        nav.menu aria-label="Pages" {
            @for (_, address, word, key) in MENU { a href=(address) data-go=(key) { (word) } }
        }
    };
    whole(title, &menu, body, None)
}

/// A page for somebody who is not signed in.
pub(super) fn bare(title: &str, body: &Markup) -> Markup {
    whole(title, &html! {}, body, None)
}

fn whole(title: &str, menu: &Markup, body: &Markup, now: Option<&str>) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" data-now=[now] {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="robots" content="noindex";
                title { (safe::line(title).text) " · Safepoint" }
                link rel="icon" type="image/svg+xml" href="/page.svg";
                link rel="stylesheet" href="/page.css";
                script src="/page.js" defer {}
            }
            body {
                a.skip href="#main" { "Skip to the content" }
                header.top {
                    a.brand href="/" {
                        img src="/page.svg" alt="" width="22" height="22";
                        span { "Safepoint" }
                    }
                    (menu)
                }
                p.notice role="status" aria-live="polite" id="notice" hidden {}
                main id="main" tabindex="-1" { (body) }
                @if now.is_some() {
                    footer.bottom {
                        span id="connection" data-state="still" { "Reload to see what is new" }
                        button.quiet type="button" data-needs-script data-keys hidden {
                            "Keys " kbd { "?" }
                        }
                    }
                    (keys())
                }
            }
        }
    }
}

/// What the keys do.
fn keys() -> Markup {
    let rows = [
        ("j  k", "next and previous in a list"),
        ("Enter", "open"),
        (
            "g then i s c w t r u",
            "inbox, sessions, checkpoints, workspaces, trail, rules, status",
        ),
        ("d", "to the decision, on a hold"),
        ("/", "to the filter, in the trail"),
        ("?", "this list"),
        ("Esc", "close"),
    ];
    html! {
        dialog id="keys" aria-labelledby="keys-title" {
            h2 id="keys-title" { "Keys" }
            dl.keys {
                @for (key, what) in rows {
                    dt { @for one in key.split("  ") { kbd { (one) } " " } }
                    dd { (what) }
                }
            }
            form method="dialog" { button { "Close" } }
        }
    }
}
