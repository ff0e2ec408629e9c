//! Looking entries up.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use safepoint_model::Timestamp;
use safepoint_store::{Durability, Flow};
use safepoint_trail::{FieldFilter, Query, Stream, Trail, TrailError, newest_of, page_of};
use testkit::{Room, draft, on_every_store};

/// A hundred entries, a second apart, that differ in everything that can be asked for.
fn filled(room: &Room) -> Trail {
    let trail = room.trail();
    for number in 0..100 {
        room.clock.move_by(1_000_000);
        let mut draft = draft(&format!("ses_{}", number % 4), number);
        draft.actor = format!("agent:{}", number % 5).parse().unwrap();
        draft.kind = format!("kind_{}", number % 10).parse().unwrap();
        draft.action_id = Some(format!("act_{:016}", number / 2).parse().unwrap());
        draft.body = serde_json::json!({"n": number, "nested": {"even": number % 2 == 0, "list": [number]}, "name": format!("n{number}")});
        trail.append(draft, Durability::Sync).unwrap();
    }
    trail
}

fn places(trail: &Trail, query: &Query) -> Vec<u64> {
    let mut found = Vec::new();
    trail
        .entries(query, |entry| -> Result<Flow, TrailError> {
            found.push(entry.seq);
            Ok(Flow::More)
        })
        .unwrap();
    found
}

fn at(second: i64) -> Option<Timestamp> {
    let start = Timestamp::parse("2026-11-15T07:00:00Z").unwrap();
    Some(start.saturating_add_micros(second * 1_000_000))
}

on_every_store! {
    fn tr_08_a_stream_is_found_in_whatever_blocks_it_is(room: Room) {
        let trail = room.trail();
        // One that is everywhere, one that is seldom, one that ends early, one that begins late.
        let of = |number: u64| match number {
            0 | 300 | 301 | 1_100 => "seldom",
            1..40 => "early",
            900.. => "late",
            _ => "often",
        };
        let added: Result<(), TrailError> = trail.write(Durability::Sync, |writing| {
            (0..1_200).try_for_each(|number| writing.append(draft(of(number), number as usize)).map(drop))
        });
        added.unwrap();
        let trail = room.trail(); // which remembers nothing
        for name in ["seldom", "early", "late", "often", "never"] {
            let stream: Stream = name.parse().unwrap();
            // Entry `number` stands at place `number + 1`.
            let expected: Vec<u64> = (0..1_200).filter(|n| of(*n) == name).map(|n| n + 1).collect();
            let query = Query { streams: vec![stream.clone()], ..Query::default() };
            assert_eq!(places(&trail, &query), expected, "{name}");
            assert_eq!(trail.newest(&query, 2).unwrap(), expected.iter().rev().nth(1).copied().unwrap_or(1_201).min(1_201), "{name}");
            let read = trail.store().read(|sql| {
                let mut pages = Vec::new();
                let mut from = 0;
                loop {
                    let page = page_of(sql, &stream, from, 7)?;
                    let Some(last) = page.last() else { break };
                    from = last.seq + 1;
                    pages.extend(page.iter().map(|entry| entry.seq));
                }
                let newest = newest_of(sql, &stream, "tested")?.map(|entry| entry.seq);
                Ok::<_, TrailError>((pages, newest, newest_of(sql, &stream, "other")?))
            });
            assert_eq!(read.unwrap(), (expected.clone(), expected.last().copied(), None), "{name}");
        }
        assert_eq!(trail.find_stream("sel").unwrap().as_str(), "seldom");
        // Each goes on where it was.
        for name in ["seldom", "early", "late", "often", "never"] {
            trail.append(draft(name, 0), Durability::Sync).unwrap();
        }
        assert_eq!(trail.verify(|_| {}).unwrap().first_bad, None);
    }

    fn tr_08_every_field_can_be_asked_for(room: Room) {
        let trail = filled(&room);
        let all = Query::default();
        // Entry `number` stands at place `number + 1`.
        let expect = |query: Query, wanted: &dyn Fn(u64) -> bool| {
            let expected: Vec<u64> = (0..100).filter(|n| wanted(*n)).map(|n| n + 1).collect();
            assert_eq!(places(&trail, &query), expected, "{query:?}");
        };
        assert_eq!(places(&trail, &all).len(), 101);
        expect(Query { streams: vec!["ses_1".parse().unwrap()], ..all.clone() }, &|n| n % 4 == 1);
        expect(Query { streams: vec!["ses_1".parse().unwrap(), "ses_2".parse().unwrap()], ..all.clone() }, &|n| n % 4 == 1 || n % 4 == 2);
        expect(Query { action: Some("act_0000000000000007".into()), ..all.clone() }, &|n| n / 2 == 7);
        expect(Query { kind: Some("kind_3".into()), ..all.clone() }, &|n| n % 10 == 3);
        expect(Query { actor: Some("agent:4".into()), ..all.clone() }, &|n| n % 5 == 4);
        expect(Query { since: at(91), ..all.clone() }, &|n| n >= 90);
        expect(Query { since: at(11), until: at(21), ..all.clone() }, &|n| (10..20).contains(&n));
        expect(Query { kind: Some("kind_3".into()), actor: Some("agent:3".into()), since: at(50), ..all.clone() }, &|n| n % 10 == 3 && n >= 49);
        for (filter, wanted) in [
            ("n=42", &(|n: u64| n == 42) as &dyn Fn(u64) -> bool),
            ("name=n42", &|n| n == 42),
            ("nested.even=true", &|n| n % 2 == 0),
            ("nested.list.0=17", &|n| n == 17),
            ("nested.missing=1", &|_| false),
        ] {
            expect(Query { fields: vec![FieldFilter::parse(filter).unwrap()], ..all.clone() }, wanted);
        }
        for text in ["", "=1", "a..b=1", "nothing"] {
            assert_eq!(FieldFilter::parse(text), None, "{text}");
        }
    }

    fn tr_08_pages_join_without_gap_or_overlap(room: Room) {
        let trail = filled(&room);
        let mut query = Query { actor: Some("agent:1".into()), ..Query::default() };
        let whole = places(&trail, &query);
        let mut joined = Vec::new();
        loop {
            let mut page = Vec::new();
            trail.entries(&query, |entry| -> Result<Flow, TrailError> {
                page.push(entry.seq);
                Ok(if page.len() < 3 { Flow::More } else { Flow::Enough })
            }).unwrap();
            let Some(last) = page.last() else { break };
            query.from = last + 1;
            joined.extend(page);
        }
        assert_eq!(joined, whole);
        query.from = 0;
        assert_eq!(trail.newest(&query, 3).unwrap(), whole[whole.len() - 3]);
        assert_eq!(trail.newest(&query, 1_000).unwrap(), whole[0]);
        assert_eq!(trail.newest(&query, 0).unwrap(), 101);
    }

    fn tr_08_entries_are_found_by_id_prefix_and_place(room: Room) {
        let trail = filled(&room);
        let entry = trail.find("42").unwrap();
        assert_eq!(trail.find(entry.id.as_str()).unwrap(), entry);
        assert_eq!(trail.find(&entry.id.as_str()[..20]).unwrap(), entry);
        assert!(matches!(trail.find("ent_0"), Err(TrailError::Ambiguous { .. })));
        for unknown in ["101", "-1", "ent_zzzz", "ent_7zzzzzzzzz", "what", ""] {
            assert!(matches!(trail.find(unknown), Err(TrailError::NotFound(_))), "{unknown}");
        }
    }

    fn tr_08_an_error_while_reading_stops_and_comes_back(room: Room) {
        let trail = filled(&room);
        let mut read = 0;
        let result = trail.entries(&Query::default(), |_| {
            read += 1;
            Err(TrailError::NotFound("patience".into()))
        });
        assert!(matches!(result, Err(TrailError::NotFound(_))));
        assert_eq!(read, 1);
    }
}
