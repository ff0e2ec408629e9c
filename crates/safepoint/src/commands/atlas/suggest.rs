//! `safepoint atlas suggest`: settings for what was reached and refused here. It writes nothing.

use safepoint_authority::OutsideKind;
use safepoint_control::pass::OutsideUse;
use safepoint_fence::HostRule;
use safepoint_model::{Clock, Exit, Span, Timestamp, text};
use schemars::JsonSchema;
use serde::Serialize;

use crate::context::Context;
use crate::error::CliError;
use crate::world::SystemClock;

/// Arguments of `atlas suggest`
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Only from what was done in this time, such as `24h`
    #[arg(long, value_name = "TIME", default_value = "7d")]
    since: Span,
}

/// What `atlas suggest` prints.
#[derive(Serialize, JsonSchema)]
pub(crate) struct SuggestReply {
    /// For `network: {hosts: […]}`, the most used first.
    hosts: Vec<SuggestedTarget>,
    /// For `services: […]`, the most used first.
    services: Vec<SuggestedTarget>,
    /// The same, as `safepoint.yaml` has it.
    yaml: String,
}

/// One target, and how often it was wanted.
#[derive(Serialize, JsonSchema)]
struct SuggestedTarget {
    /// As settings name it.
    target: String,
    /// So many actions reached it.
    reached: u64,
    /// So many were refused it.
    refused: u64,
}

pub(crate) fn run(context: &mut Context, arguments: &Arguments) -> Result<Exit, CliError> {
    let root = context.workspace()?.root;
    let micros = i64::try_from(arguments.since.as_micros()).unwrap_or(i64::MAX);
    let since: Timestamp = SystemClock
        .now()
        .saturating_add_micros(micros.saturating_neg());
    let uses = context
        .control()?
        .outside_uses(&root.to_string_lossy(), since)?;
    let reply = SuggestReply::of(&uses);
    context.console.value(&reply, |reply| reply.yaml.clone())?;
    Ok(Exit::Done)
}

impl SuggestReply {
    fn of(uses: &[OutsideUse]) -> Self {
        let mut hosts = Vec::new();
        let mut services = Vec::new();
        for used in uses {
            let name = &used.target.name;
            let (list, target) = match used.target.kind {
                OutsideKind::Host => match name.parse::<HostRule>() {
                    Ok(rule) if rule.is_public() => (&mut hosts, name.clone()),
                    Ok(_) => (&mut services, name.clone()),
                    // Settings could not name it.
                    Err(_) => continue,
                },
                OutsideKind::Socket if name.starts_with('/') => {
                    (&mut services, format!("unix:{name}"))
                }
                // Files and abstract sockets have no setting.
                OutsideKind::Socket | OutsideKind::File => continue,
            };
            list.push(SuggestedTarget {
                target,
                reached: used.reached,
                refused: used.refused,
            });
        }
        let yaml = yaml(&hosts, &services);
        Self {
            hosts,
            services,
            yaml,
        }
    }
}

fn yaml(hosts: &[SuggestedTarget], services: &[SuggestedTarget]) -> String {
    if hosts.is_empty() && services.is_empty() {
        return "# nothing outside was reached or refused\n".to_owned();
    }
    let mut shown = String::new();
    if !hosts.is_empty() {
        shown.push_str("network:\n  hosts:\n");
        for host in hosts {
            shown.push_str(&entry(host, "    "));
        }
    }
    if !services.is_empty() {
        shown.push_str("services:\n");
        for service in services {
            shown.push_str(&entry(service, "  "));
        }
    }
    shown
}

fn entry(target: &SuggestedTarget, margin: &str) -> String {
    // Agents choose these names: one must not become another line of the settings.
    let name = text::line(&target.target).text;
    let quoted = name.replace('\'', "''");
    format!(
        "{margin}# reached {}, refused {}\n{margin}- '{quoted}'\n",
        times(target.reached),
        times(target.refused)
    )
}

fn times(count: u64) -> String {
    match count {
        1 => "once".to_owned(),
        _ => format!("{count} times"),
    }
}
