//! Hand-made results of b_eff for tests, by simple formulas; no measurement.

use crate::b_eff::config::CommConfig;
use crate::b_eff::plan::{BufferMode, PatternFamily};
use crate::b_eff::records::*;
use crate::frame::config::RepetitionPolicy;
use crate::frame::records::*;

/// Lmax of 512 MiB per process, from the table of the definition.
const LARGE: [u64; 8] = [9742, 23_170, 55_109, 131_072, 311_744, 741_455, 1_763_488, 4_194_304];

pub(crate) fn sizes() -> Vec<u64> {
    (0..13).map(|k| 1 << k).chain(LARGE).collect()
}

/// Speed of a loop in bytes per second of all ranks, by pattern, family, size, method and repetition.
pub(crate) type Speed<'a> = &'a dyn Fn(&str, PatternFamily, u64, MessageMethod, u32) -> f64;

/// A valid run on `hosts` hosts, two ranks each on two cores, with this speed.
pub(crate) fn run(hosts: u64, speed: Speed<'_>) -> CommResult {
    let mut result = CommResult::new(config(), setup(hosts));
    let ranks = 2 * hosts;
    let effort = MeasurementEffort {
        loop_seconds: 0.0025,
        best_method_from: 21,
        unrepeated_from: 21,
        random_rings: 30,
        extras: true,
    };
    let pilot =
        vec![PilotRecord { message_bytes: 1, method: MessageMethod::Sendrecv, iterations: 300, seconds: 0.0006 }];
    let half_bytes = 6 * (4_194_304 + 16);
    let memory = Some(MessageMemory { half_bytes, huge_page_total_bytes: Some(0), huge_page_smallest_bytes: Some(0) });
    result.announcement = Some(Announcement { limit_seconds: 240.0, expected_seconds: 187.5, effort, pilot, memory });
    result.patterns.push(pattern("ping-pong", PatternFamily::PingPong, "2", 2, speed));
    for ring in 1..=6 {
        let shape = if ring == 1 { format!("{ranks} in rings of 2") } else { ranks.to_string() };
        result.patterns.push(pattern(&format!("ring-{ring}"), PatternFamily::Ring, &shape, 2 * ranks, speed));
    }
    for ring in 1..=30 {
        result.patterns.push(pattern(
            &format!("random-{ring}"),
            PatternFamily::Random,
            &format!("{ranks} ranks"),
            2 * ranks,
            speed,
        ));
    }
    result.patterns.push(pattern("worst-cycle", PatternFamily::WorstCycle, &ranks.to_string(), 2 * ranks, speed));
    result.patterns.push(pattern("best-bisection", PatternFamily::Bisection, "pairs", ranks, speed));
    result.patterns.push(pattern("cart-2d-acyclic", PatternFamily::Cartesian, "2x2", 2 * ranks, speed));
    result.setup.patterns = result.patterns.len() as u64;
    result.ending = CommEnding {
        outcome: RunOutcome::Complete,
        real_seconds: 184.25,
        pilot_seconds: 6.5,
        verify_seconds: 12.75,
        efforts: Vec::new(),
        rank_memory_high_water_bytes: 96 << 20,
        rank_memory_planned_bytes: 80 << 20,
    };
    result
}

fn pattern(name: &str, family: PatternFamily, shape: &str, messages: u64, speed: Speed<'_>) -> CommPatternRecord {
    let methods: &[MessageMethod] =
        if family == PatternFamily::PingPong { &[MessageMethod::PingPong] } else { &MessageMethod::EXCHANGES };
    let sizes = sizes().into_iter().map(|message_bytes| {
        let loops = methods.iter().flat_map(|&method| (0..3).map(move |repetition| (method, repetition)));
        let loops = loops.map(|(method, repetition)| {
            let rate = speed(name, family, message_bytes, method, repetition);
            let per_iteration = message_bytes as f64 * messages as f64 / rate;
            let iterations = ((0.003 / per_iteration) as u64).clamp(1, 300);
            LoopRecord { method, repetition, iterations, seconds: iterations as f64 * per_iteration }
        });
        SizeRecord { message_bytes, loops: loops.collect() }
    });
    CommPatternRecord {
        pattern: name.to_owned(),
        family,
        shape: shape.to_owned(),
        messages,
        sizes: sizes.collect(),
        bytes_checked: 1 << 24,
        bytes_wrong: 0,
        allocations_in_clock: 0,
        interference: None,
        real_seconds: 4.25,
    }
}

fn config() -> CommConfig {
    use PatternFamily::*;
    CommConfig {
        time_seconds: 240.0,
        quick: false,
        bind: crate::frame::config::BindPolicy::Auto,
        seed: 42,
        families: vec![PingPong, Ring, Random, WorstCycle, Bisection, Cartesian],
        buffers: BufferMode::Cyclic,
        repeat: RepetitionPolicy::Off,
        until_share: None,
        time_limit: None,
        memory_per_process_bytes: None,
        rmax_gflops: None,
        out: None,
        bare: false,
        inject: false,
    }
}

fn setup(hosts: u64) -> CommSetup {
    let list = (1..=hosts).map(|number| fixture::host(&format!("node{number:02}"), 2)).collect();
    CommSetup {
        machine: MachineRecord {
            environment: vec![("MPIR_CVAR_CH4_NUM_VCIS".into(), "2".into())],
            ..fixture::machine(list, &["beff-raw", "comm", "--time", "4m"])
        },
        placement: (0..2 * hosts)
            .map(|rank| Placement { host: rank / 2, cpus: (rank % 2).to_string(), cores: Some(1) })
            .collect(),
        binding: Some("-bind-to of MPICH's mpirun".into()),
        numbering: if hosts == 1 { RankNumbering::OneHost } else { RankNumbering::Sequential },
        transport: Transport {
            device: Some("ch4:ofi".into()),
            loaded: vec!["libfabric".into(), "libucp".into()],
            interfaces: vec!["eth0".into()],
        },
        lmax_bytes: 4_194_304,
        sizes_bytes: sizes(),
        patterns: 0,
        clock_resolution_ns: 1.0,
        clock_read_ns: 24.5,
        barrier_ns: 1850.0,
    }
}
