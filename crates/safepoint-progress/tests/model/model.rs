//! What must hold, in memory: written from the requirements, with no rule of the crate in it.

use safepoint_model::WorkspaceId;

use crate::step::{Ask, Kind, Token, Upon, What};

pub(crate) const STATES: [&str; 9] = [
    "idle",
    "active",
    "blocked",
    "migrating",
    "suspended",
    "integrating",
    "conflicted",
    "closed",
    "failed",
];
pub(crate) const SIGNALS: [&str; 11] = [
    "ready",
    "started",
    "blocked",
    "checkpoint",
    "complete",
    "failed",
    "integrate",
    "acknowledged",
    "escalation",
    "suspend",
    "migrate",
];
pub(crate) const CONFIDENCES: [&str; 3] = ["high", "medium", "low"];

/// The moves of PR-01 between fixed states; pauses end where they began.
const MOVES: [(&str, &[&str]); 6] = [
    ("idle", &["active", "failed"]),
    (
        "active",
        &["blocked", "migrating", "suspended", "integrating", "failed"],
    ),
    ("blocked", &["active", "migrating", "suspended", "failed"]),
    ("integrating", &["closed", "conflicted", "failed"]),
    ("conflicted", &["closed", "failed"]),
    ("paused", &["failed"]),
];

/// Everything there is.
#[derive(Clone, Debug, Default)]
pub(crate) struct Model {
    pub(crate) spaces: Vec<Space>,
}

/// One workspace.
#[derive(Clone, Debug)]
pub(crate) struct Space {
    pub(crate) parent: Option<usize>,
    pub(crate) role: &'static str,
    pub(crate) state: &'static str,
    pub(crate) former: Option<&'static str>,
    pub(crate) chain: Vec<Link>,
    keys: Vec<(u8, Ask, usize)>,
    /// Whether anybody knows the token.
    is_known: bool,
    /// How many tokens there were before this one, and were seen.
    old_tokens: usize,
    /// What it emitted, and whether the parent has it.
    pub(crate) signals: Vec<(&'static str, bool)>,
    /// The kinds of its entries in the trail.
    pub(crate) entries: Vec<&'static str>,
}

impl Space {
    pub(crate) fn is_known(&self) -> bool {
        self.is_known
    }

    pub(crate) fn has_key(&self, key: u8) -> bool {
        self.keys.iter().any(|(known, ..)| *known == key)
    }

    /// Everything about it, as the real one is shown; `ids` are those of all workspaces.
    pub(crate) fn shown(&self, ids: &[WorkspaceId]) -> String {
        let status = |link: &Link| {
            if link.is_final {
                "final"
            } else {
                "provisional"
            }
        };
        let links: Vec<String> = self
            .chain
            .iter()
            .map(|link| format!("{} {} {}", link.kind, status(link), link.confidence))
            .collect();
        let signals: Vec<String> = self
            .signals
            .iter()
            .map(|(kind, delivered)| format!("{kind} {delivered}"))
            .collect();
        format!(
            "{} below {:?}: {} {:?}; {links:?}; final {:?}; {signals:?}; {:?}",
            self.role,
            self.parent.map(|parent| ids[parent].to_string()),
            self.state,
            self.former,
            self.chain.iter().rposition(|link| link.is_final),
            self.entries,
        )
    }
}

/// One record.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Link {
    pub(crate) is_final: bool,
    pub(crate) confidence: &'static str,
    pub(crate) kind: &'static str,
}

/// What comes back, in words.
pub(crate) type Answer = String;

fn said(words: &str) -> Answer {
    words.to_owned()
}

fn moved(space: &Space, to: &'static str) -> Option<(&'static str, Option<&'static str>)> {
    let is_paused = ["migrating", "suspended"].contains(&space.state);
    let row = if is_paused { "paused" } else { space.state };
    let listed = MOVES
        .iter()
        .any(|(from, all)| *from == row && all.contains(&to));
    let back = is_paused && space.former == Some(to);
    if !listed && !back {
        return None;
    }
    let pauses = ["migrating", "suspended"].contains(&to);
    Some((to, pauses.then_some(space.state)))
}

impl Model {
    pub(crate) fn apply(&mut self, what: &What) -> Answer {
        let count = self.spaces.len();
        let at = |number: usize| number % count;
        match what {
            What::Root { directive } => self.add(None, "coordinator", *directive),
            What::Below { .. }
            | What::Record { .. }
            | What::Emit { .. }
            | What::Move { .. }
            | What::Migrate { .. }
                if count == 0 =>
            {
                said("nothing there")
            }
            What::Below {
                parent,
                observer,
                directive,
            } => {
                let parent = at(*parent);
                if ["closed", "failed"].contains(&self.spaces[parent].state) {
                    return said("refused");
                }
                let role = if *observer { "observer" } else { "worker" };
                self.add(Some(parent), role, *directive)
            }
            What::Record { space, token, ask } => self.record(at(*space), *token, ask),
            What::Emit {
                space,
                token,
                kind,
                reason,
            } => self.emit(at(*space), *token, SIGNALS[*kind], *reason),
            What::Move { space, to } => {
                let answer = self.go_by_hand(at(*space), STATES[*to]);
                self.deliver();
                answer
            }
            What::Migrate { space } => self.migrate(at(*space)),
            What::Clock { .. } | What::Reopen => said("done"),
        }
    }

    fn add(&mut self, parent: Option<usize>, role: &'static str, directive: bool) -> Answer {
        let mut entries = vec!["workspace_created"];
        if directive {
            entries.push("workspace_state_changed");
        }
        self.spaces.push(Space {
            parent,
            role,
            state: if directive { "active" } else { "idle" },
            former: None,
            chain: Vec::new(),
            keys: Vec::new(),
            is_known: true,
            old_tokens: 0,
            signals: Vec::new(),
            entries,
        });
        said("done")
    }

    /// Whether the token counts; one that does not is recorded.
    fn is_agent(&mut self, space: usize, token: Token) -> bool {
        let space = &mut self.spaces[space];
        // Without an older token the present one is meant.
        let counts = match token {
            Token::Right => space.is_known,
            Token::Old => space.old_tokens == 0 && space.is_known,
            Token::Wrong => false,
        };
        if !counts {
            space.entries.push("authentication_failed");
        }
        counts
    }

    fn record(&mut self, number: usize, token: Token, ask: &Ask) -> Answer {
        if !self.is_agent(number, token) {
            return said("not the agent");
        }
        let space = &mut self.spaces[number];
        let kind = match (ask.kind, space.role) {
            (Kind::Fitting, "observer") | (Kind::Observation, _) => "observation",
            (Kind::Fitting | Kind::Artifact, _) => "artifact",
            (Kind::Unknown, _) => "unheard",
        };
        let mut reject = |reason: &str| {
            space.entries.push("checkpoint_rejected");
            said(reason)
        };
        if ask.broken {
            return reject("invalid_structure");
        }
        if let Some(key) = ask.key
            && let Some((_, first, place)) = space.keys.iter().find(|(known, ..)| *known == key)
        {
            return match first == ask {
                true => format!("record {place}"),
                false => reject("invalid_structure"),
            };
        }
        if kind == "unheard" {
            return reject("invalid_type");
        }
        let fits =
            [("worker", "artifact"), ("observer", "observation")].contains(&(space.role, kind));
        if !fits {
            return reject("permission_denied");
        }
        if space.state != "active" {
            return reject("workspace_not_active");
        }
        let is_at_end = match ask.upon {
            Upon::Head => true,
            Upon::Nothing => space.chain.is_empty(),
            Upon::First => space.chain.len() <= 1,
            Upon::Foreign => false,
        };
        if !is_at_end {
            return reject("invalid_parent");
        }
        let place = space.chain.len();
        space.chain.push(Link {
            is_final: ask.is_final,
            confidence: CONFIDENCES[ask.confidence],
            kind,
        });
        if let Some(key) = ask.key {
            space.keys.push((key, ask.clone(), place));
        }
        space.entries.push("checkpoint_created");
        self.tell(number, "checkpoint");
        self.deliver();
        format!("record {place}")
    }

    fn tell(&mut self, number: usize, kind: &'static str) {
        self.spaces[number].signals.push((kind, false));
        self.spaces[number].entries.push("signal_emitted");
    }

    fn emit(&mut self, number: usize, token: Token, kind: &'static str, reason: bool) -> Answer {
        if ["blocked", "failed", "escalation"].contains(&kind) && !reason {
            return said("refused");
        }
        if !self.is_agent(number, token) {
            return said("not the agent");
        }
        let may: &[&str] = match self.spaces[number].role {
            "coordinator" => &["ready", "started", "failed", "integrate", "acknowledged"],
            "worker" => &[
                "ready",
                "started",
                "blocked",
                "checkpoint",
                "complete",
                "failed",
                "escalation",
            ],
            _ => &["ready", "started", "complete", "failed", "escalation"],
        };
        if !may.contains(&kind) {
            self.spaces[number].entries.push("permission_denied");
            return said("refused");
        }
        self.tell(number, kind);
        let to = match kind {
            "started" => Some("active"),
            "blocked" => Some("blocked"),
            "complete" => Some("integrating"),
            "failed" => Some("failed"),
            _ => None,
        };
        // What was paused from outside is not taken up again by the agent itself.
        let lifts_pause = self.spaces[number].former.is_some() && to != Some("failed");
        // Only what it is told to do makes an idle workspace active.
        let begins = self.spaces[number].state == "idle" && to == Some("active");
        if let Some(to) = to
            && !lifts_pause
            && !begins
            && moved(&self.spaces[number], to).is_some()
        {
            self.go(number, to);
        }
        self.deliver();
        said("done")
    }

    /// A move that the coordinator asks for: those of an agent and of an integration are not
    /// its own, but a root is taken over by nobody.
    fn go_by_hand(&mut self, number: usize, to: &'static str) -> Answer {
        let lives = |space: &Space| !["closed", "failed"].contains(&space.state);
        let mut below = self.spaces.iter().filter(|it| it.parent == Some(number));
        let is_root = self.spaces[number].parent.is_none();
        let refused = match to {
            "conflicted" => true,
            "integrating" => !is_root,
            "closed" => !is_root || below.any(lives),
            _ => false,
        };
        if refused && moved(&self.spaces[number], to).is_some() {
            self.spaces[number].entries.push("workspace_state_refused");
            return said("refused");
        }
        self.go(number, to)
    }

    fn go(&mut self, number: usize, to: &'static str) -> Answer {
        let Some((state, former)) = moved(&self.spaces[number], to) else {
            self.spaces[number].entries.push("workspace_state_refused");
            return said("no such move");
        };
        let space = &mut self.spaces[number];
        (space.state, space.former) = (state, former);
        space.entries.push("workspace_state_changed");
        if to == "failed" {
            for child in 0..self.spaces.len() {
                let below = &self.spaces[child];
                if below.parent == Some(number) && !["closed", "failed"].contains(&below.state) {
                    self.go(child, "failed");
                }
            }
        }
        said("done")
    }

    fn migrate(&mut self, number: usize) -> Answer {
        let before = self.spaces[number].state;
        if !["active", "blocked"].contains(&before) {
            self.spaces[number].entries.push("workspace_state_refused");
            return said("no such move");
        }
        let space = &mut self.spaces[number];
        space.entries.extend([
            "workspace_state_changed",
            "agent_bound",
            "workspace_state_changed",
        ]);
        space.old_tokens += usize::from(space.is_known);
        space.is_known = true;
        self.deliver();
        said("done")
    }

    /// Nobody heard the answer: a token in it is lost.
    pub(crate) fn forget_token(&mut self, what: &What) {
        let count = self.spaces.len();
        let lost = match what {
            What::Root { .. } | What::Below { .. } => count.checked_sub(1),
            What::Migrate { space } => Some(space % count.max(1)),
            _ => None,
        };
        if let Some(space) = lost.and_then(|lost| self.spaces.get_mut(lost)) {
            space.is_known = false;
        }
    }

    /// Gives parents what waits for them, as far as they can take it.
    pub(crate) fn deliver(&mut self) {
        for number in 0..self.spaces.len() {
            let Some(parent) = self.spaces[number].parent else {
                continue;
            };
            if ["blocked", "migrating", "suspended", "closed", "failed"]
                .contains(&self.spaces[parent].state)
            {
                continue;
            }
            let mut count = 0;
            for (_, is_delivered) in &mut self.spaces[number].signals {
                count += usize::from(!*is_delivered);
                *is_delivered = true;
            }
            let told = std::iter::repeat_n("signal_delivered", count);
            self.spaces[parent].entries.extend(told);
        }
    }
}
