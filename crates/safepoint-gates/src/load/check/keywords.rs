//! Keywords: whether they can be looked for, and whether they say anything.

use regex::RegexBuilder;

use crate::atlas::{AtlasManifest, CheckpointTrigger, MatchMode};
use crate::keyword::{KeywordRule, KeywordSet};
use crate::load::finding::Findings;
use crate::load::shape::below;
use crate::load::suggest::shown;

/// Words to look for, and where they stand.
struct Words<'a> {
    rule: KeywordRule<'a>,
    site: Site,
}

#[derive(Clone, Copy)]
enum Site {
    /// The trigger of a gate.
    Gate(usize),
    /// The keywords of a context.
    Context(usize),
    /// A key of `keyword_match`.
    Mapping,
}

impl Words<'_> {
    fn pointer(&self, index: usize, text: &str) -> String {
        match self.site {
            Site::Gate(gate) => format!("/checkpoints/{gate}/trigger/patterns/{index}"),
            Site::Context(context) => format!("/context_blocks/{context}/keywords/{index}"),
            Site::Mapping => below("/checkpoint_config/keyword_match/mappings", text),
        }
    }
}

fn all(atlas: &AtlasManifest) -> Vec<Words<'_>> {
    let mut words = Vec::new();
    let mut add = |site, patterns, match_mode, case_sensitive| {
        words.push(Words {
            rule: KeywordRule {
                patterns,
                match_mode,
                case_sensitive,
            },
            site,
        });
    };
    for (index, gate) in atlas.checkpoints.iter().enumerate() {
        if let CheckpointTrigger::Keyword {
            patterns,
            case_sensitive,
            match_mode,
        }
        | CheckpointTrigger::KeywordMatch {
            patterns,
            case_sensitive,
            match_mode,
        } = &gate.trigger
        {
            add(Site::Gate(index), patterns, *match_mode, *case_sensitive);
        }
    }
    for (index, context) in atlas.context_blocks.iter().enumerate() {
        if !context.keywords.is_empty() {
            add(
                Site::Context(index),
                &context.keywords,
                MatchMode::Any,
                false,
            );
        }
    }
    let section = atlas.checkpoint_config.as_ref();
    if let Some(section) = section.and_then(|config| config.keyword_match.as_ref()) {
        for (key, _) in &section.mappings.0 {
            let patterns = std::slice::from_ref(key);
            add(
                Site::Mapping,
                patterns,
                section.match_mode,
                section.case_sensitive,
            );
        }
    }
    words
}

pub(super) fn check(atlas: &AtlasManifest, findings: &mut Findings) {
    let words = all(atlas);
    let rules: Vec<KeywordRule<'_>> = words.iter().map(|words| words.rule).collect();
    if KeywordSet::new(&rules).is_ok() {
        return;
    }
    // Something is wrong: each pattern by itself says which.
    let mut told = false;
    for words in &words {
        for (index, text) in words.rule.patterns.iter().enumerate() {
            let alone = KeywordRule {
                patterns: std::slice::from_ref(text),
                ..words.rule
            };
            if let Err(error) = KeywordSet::new(&[alone]) {
                told = true;
                tell(words, index, text, error.to_string(), findings);
            }
        }
        if let (Err(error), false) = (KeywordSet::new(&[words.rule]), told) {
            told = true;
            let text = words
                .rule
                .patterns
                .get(error.index)
                .map_or("", String::as_str);
            tell(words, error.index, text, error.to_string(), findings);
        }
    }
    if !told && let Err(error) = KeywordSet::new(&rules) {
        let message = error.to_string();
        if let Some(words) = words.get(error.rule) {
            let text = words
                .rule
                .patterns
                .get(error.index)
                .map_or("", String::as_str);
            tell(words, error.index, text, message, findings);
        }
    }
}

fn tell(words: &Words<'_>, index: usize, text: &str, message: String, findings: &mut Findings) {
    let pointer = words.pointer(index, text);
    match words.site {
        Site::Mapping => findings.key_error(pointer, message, None),
        _ => findings.error(pointer, message, None),
    }
}

pub(super) fn warn(atlas: &AtlasManifest, findings: &mut Findings) {
    for words in all(atlas) {
        for (index, text) in words.rule.patterns.iter().enumerate() {
            if !fires_on_everything(text, words.rule.match_mode) {
                continue;
            }
            let message = format!("`{}` occurs in nearly every text", shown(text));
            let hint = "name a longer word";
            let pointer = words.pointer(index, text);
            match words.site {
                Site::Mapping => findings.key_warning(pointer, message, hint),
                _ => findings.warning(pointer, message, hint),
            }
        }
    }
}

fn fires_on_everything(text: &str, mode: MatchMode) -> bool {
    if mode == MatchMode::Regex {
        let mut builder = RegexBuilder::new(text);
        let regex = builder.size_limit(1 << 20).build();
        return regex.is_ok_and(|regex| regex.is_match(""));
    }
    // One letter says little, but one sign of Chinese or Japanese is a word.
    let short = |word: &str| {
        let mut letters = word.chars().filter(|c| *c != '*' && !c.is_whitespace());
        match (letters.next(), letters.next()) {
            (Some(only), None) => u32::from(only) < 0x2e80,
            _ => false,
        }
    };
    text.split('|').any(short)
}
