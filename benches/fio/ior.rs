//! IOR as the other side: its POSIX backend, contiguous in a segment of a shared file or in one file per process. `--ior` names the
//! program, which is not part of this repository.

use std::fs;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::sides::{FileWorkload, JobDescription, RunSample};
use crate::BenchError;

/// Arguments of one run: a transfer is one chunk, a block is all that a process moves.
fn arguments(work: &JobDescription, summary: &str) -> Vec<String> {
    let mut words: Vec<String> =
        ["-a", "POSIX", "-s", "1", "-i", "1", "-k", "-O", "summaryFormat=JSON", "-O"].map(str::to_owned).to_vec();
    words.push(format!("summaryFile={summary}"));
    words.extend(["-t".into(), work.chunk_bytes.to_string(), "-b".into(), work.job_bytes().to_string()]);
    words.extend(["-o".into(), work.path.display().to_string()]);
    let how: &[&str] = match work.access {
        FileWorkload::Write => &["-w", "-e"],
        // The file keeps its contents.
        FileWorkload::Rewrite => &["-w", "-e", "-E"],
        // No row with IOR is random.
        FileWorkload::RandomRewrite => &["-w", "-e", "-E", "-z"],
        FileWorkload::RandomRead | FileWorkload::RandomMixed => &["-r", "-E", "-z"],
        FileWorkload::Read | FileWorkload::Cached => &["-r", "-E"],
    };
    words.extend(how.iter().map(ToString::to_string));
    words.extend((!work.shared).then(|| "-F".to_owned()));
    words
}

/// Measures one run. Its time covers the transfers and the sync after them, without open and close, as on our side.
pub fn measure_ior(work: &JobDescription) -> Result<RunSample, BenchError> {
    let program = work.ior.as_ref().ok_or("no IOR program is given")?;
    let summary = work.path.with_extension("ior.json");
    let launcher = std::env::var("BEFF_MPIRUN").unwrap_or_else(|_| "mpirun".into());
    let output = Command::new(&launcher)
        .args(["-n", &work.jobs.to_string()])
        .arg(program)
        .args(arguments(work, &summary.display().to_string()))
        .stdin(Stdio::null())
        .output()?;
    let output_text =
        || String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        return Err(format!("IOR: {}: {}", output.status, output_text()).into());
    }
    let text = fs::read_to_string(&summary).map_err(|e| format!("IOR wrote no summary ({e}): {}", output_text()))?;
    fs::remove_file(&summary)?;
    let document: Value = serde_json::from_str(&text).map_err(|e| format!("IOR's summary is not JSON: {e}"))?;
    let seconds = transfer_seconds(&document).ok_or("IOR's summary has no wrRdTime")?;
    Ok(RunSample { transfer_seconds: seconds, ..RunSample::default() })
}

fn transfer_seconds(document: &Value) -> Option<f64> {
    document["tests"][0]["Results"][0][0]["wrRdTime"]
        .as_f64()
        .or_else(|| document["tests"][0]["Results"][0]["wrRdTime"].as_f64())
}

/// Name of the file of a process, as IOR forms it.
pub fn file_of_process(path: &std::path::Path, job: u32) -> std::path::PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{job:08}"));
    name.into()
}
