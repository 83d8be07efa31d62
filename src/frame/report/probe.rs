//! What probes of the storage say, in words.

use super::text::count;
use crate::frame::records::{Access, ProbeAt, ProbeRecord};
use crate::frame::units::{format_seconds, format_size};
use crate::frame::values::probe::{moves, StorageMove, Verdict};

/// One line for each direction, or why there is none; nothing where nothing was recorded.
#[must_use]
pub fn lines(probes: &[ProbeRecord]) -> Vec<String> {
    let all = moves(probes);
    if !all.is_empty() {
        return all.iter().map(|m| line(m, probes)).collect();
    }
    let unknown = probes.iter().find_map(|probe| Some((probe.at, probe.not_known.as_deref()?)));
    let why = match (probes.last(), unknown) {
        (None, _) => return Vec::new(),
        (_, Some((at, why))) => format!("{why} ({})", at.name()),
        (Some(last), None) if last.at == ProbeAt::Start => "the run did not come to its end".to_owned(),
        _ => "a probe has fewer than two rounds".to_owned(),
    };
    vec![format!("whether it changed under the run is not known: {why}")]
}

fn line(m: &StorageMove, probes: &[ProbeRecord]) -> String {
    let verdict = match m.verdict {
        Verdict::Changed => "CHANGED by more than 10 %",
        Verdict::Steady => "within 10 %",
        Verdict::NotDecided => "10 % are not decided",
    };
    let what = if m.access == Access::Read { "reads" } else { "rewrites" };
    let rounds = probes.iter().map(|probe| probe.read_seconds.len() as u64).fold(0, u64::saturating_add);
    let [block, seconds] = probes.first().map_or([String::new(), String::new()], |probe| {
        [format_size(probe.block_bytes), format_seconds(probe.seconds)]
    });
    format!(
        "{what} {:.1} MB/s at the start, {:.1} MB/s at the end, ratio {:.3} [{:.3}, {:.3}]: {verdict}; rank 0 alone, direct, blocks of {block}, \
         {}, {seconds} each",
        m.start_mb_per_second,
        m.end_mb_per_second,
        m.ratio,
        m.interval[0],
        m.interval[1],
        count(rounds, "round")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_has_a_reason() {
        let probe = |at, rounds: usize| ProbeRecord {
            at,
            round_bytes: 1 << 20,
            write_seconds: vec![0.5; rounds],
            read_seconds: vec![0.5; rounds],
            ..ProbeRecord::default()
        };
        let start = probe(ProbeAt::Start, 3);
        assert_eq!(lines(&[]), [""; 0]);
        assert!(lines(std::slice::from_ref(&start))[0].contains("did not come to its end"));
        assert!(lines(&[start.clone(), probe(ProbeAt::End, 1)])[0].contains("fewer than two rounds"));
        let unknown = ProbeRecord { not_known: Some("no direct I/O".into()), ..probe(ProbeAt::End, 0) };
        assert!(lines(&[start.clone(), unknown])[0].ends_with("not known: no direct I/O (end)"));
        let both = lines(&[start, probe(ProbeAt::End, 3)]);
        assert!(
            both.len() == 2 && both[0].starts_with("rewrites 2.1 MB/s") && both[1].contains("within 10 %"),
            "{both:?}"
        );
    }
}
