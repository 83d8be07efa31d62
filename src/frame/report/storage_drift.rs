//! Text about storage drift.

use super::text::count;
use crate::frame::records::{AccessMethod, ProbeRecord, ProbeTime};
use crate::frame::units::{format_seconds, format_size};
use crate::frame::values::storage_drift::{drift_by_direction, DriftVerdict, StorageDrift};

/// One line for each direction, or why it is unknown; empty without recorded probes.
#[must_use]
pub fn lines(probes: &[ProbeRecord]) -> Vec<String> {
    let all = drift_by_direction(probes);
    if !all.is_empty() {
        return all.iter().map(|m| line(m, probes)).collect();
    }
    let unknown = probes.iter().find_map(|probe| Some((probe.at, probe.unknown_reason.as_deref()?)));
    let why = match (probes.last(), unknown) {
        (None, _) => return Vec::new(),
        (_, Some((at, why))) => format!("{why} ({})", at.name()),
        (Some(last), None) if last.at == ProbeTime::Start => "the run did not end normally".to_owned(),
        _ => "a probe has fewer than two rounds".to_owned(),
    };
    vec![format!("storage drift is not known: {why}")]
}

fn line(m: &StorageDrift, probes: &[ProbeRecord]) -> String {
    let verdict = match m.verdict {
        DriftVerdict::Changed => "CHANGED by more than 10 %",
        DriftVerdict::Steady => "within 10 %",
        DriftVerdict::NotDecided => "10 % are not decided",
    };
    let what = if m.access == AccessMethod::Read { "reads" } else { "rewrites" };
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
    fn unknown_drift_has_a_reason() {
        let probe = |at, rounds: usize| ProbeRecord {
            at,
            round_bytes: 1 << 20,
            write_seconds: vec![0.5; rounds],
            read_seconds: vec![0.5; rounds],
            ..ProbeRecord::default()
        };
        let start = probe(ProbeTime::Start, 3);
        assert_eq!(lines(&[]), [""; 0]);
        assert!(lines(std::slice::from_ref(&start))[0].contains("did not end normally"));
        assert!(lines(&[start.clone(), probe(ProbeTime::End, 1)])[0].contains("fewer than two rounds"));
        let unknown = ProbeRecord { unknown_reason: Some("no direct I/O".into()), ..probe(ProbeTime::End, 0) };
        assert!(lines(&[start.clone(), unknown])[0].ends_with("not known: no direct I/O (end)"));
        let both = lines(&[start, probe(ProbeTime::End, 3)]);
        assert!(
            both.len() == 2 && both[0].starts_with("rewrites 2.1 MB/s") && both[1].contains("within 10 %"),
            "{both:?}"
        );
    }
}
