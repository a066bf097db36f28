//! `lookback scan`: a file of any size into another one, in chunks.

use super::arguments::DeviceChoice;
use super::compare::why_not_new;
use super::console::Console;
use super::error::{CliError, EXIT_INTERRUPTED, EXIT_OK};
use super::input::{self, ArrayFile, InputError, npy_header};
use super::interrupt;
use super::partial::{Identity, Partial, is_one_file, places};
use super::scan_error::ScanError;
use crate::element::{Defined, Definition, ElementType, Operator, Problem};
use crate::lab::device::DeviceError;
use crate::lab::recorder::folder_of;
use crate::lab::running::RunningReference;
use crate::out_of_core::pipeline::copy;
use crate::out_of_core::{
    Cause, Checkpoint, ChunkPlan, CopyRates, FileArray, Job, Limits, NoFile, Sink, Source, Stopped,
};
use crate::strategy::Mode;
use crate::text::{format_bytes, hexadecimal, parse_array_size, short_seconds, significant};
use clap::Args;
use sha2::{Digest, Sha256};
use std::convert::Infallible;
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Instant, UNIX_EPOCH};

/// `lookback scan`.
#[derive(Debug, Clone, Args)]
pub struct ScanArguments {
    /// The .npy file, or raw binary of --type, to scan
    #[arg(value_name = "FILE")]
    pub input: PathBuf,
    /// Where the scanned array goes: .npy of one dimension, or by any other name
    /// raw binary
    #[arg(long, value_name = "OUTPUT")]
    pub output: PathBuf,

    /// Element type of a raw file
    #[arg(long = "type", alias = "types", value_name = "TYPE", help_heading = "What to run")]
    pub element: Option<ElementType>,
    /// Element type to store, and to scan in unless it is f16 or bf16, which are
    /// scanned in f32 [default: the input's]
    #[arg(long, alias = "output-types", value_name = "TYPE", help_heading = "What to run")]
    pub output_type: Option<ElementType>,
    /// The operator [default: sum, or the operator of a type with its own]
    #[arg(long, alias = "operators", value_name = "OPERATOR", help_heading = "What to run")]
    pub operator: Option<Operator>,
    /// inclusive or exclusive
    #[arg(long, alias = "modes", value_name = "MODE", default_value_t = Mode::Inclusive, help_heading = "What to run")]
    pub mode: Mode,
    /// Where to run: auto takes the GPU if there is one
    #[arg(long, value_enum, default_value_t = DeviceChoice::Auto, hide_possible_values = true,
        value_name = "auto|cpu|cuda", help_heading = "What to run")]
    pub device: DeviceChoice,
    /// So many devices share the chunks
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64),
        help_heading = "What to run")]
    pub devices: u32,
    /// Go on with what a run that was interrupted has left
    #[arg(long, help_heading = "What to run")]
    pub resume: bool,

    /// The memory of each device that it may have, such as 2GiB
    #[arg(long, value_name = "SIZE", default_value = "1GiB", value_parser = parse_memory, help_heading = "Memory")]
    pub device_memory: u64,
    /// The host's memory that it may have for chunks, pinned where there is a GPU
    #[arg(long, value_name = "SIZE", default_value = "256MiB", value_parser = parse_memory, help_heading = "Memory")]
    pub host_memory: u64,
    /// Note how far it has come each time that so much more is written
    #[arg(long, value_name = "SIZE", default_value = "1GiB", value_parser = parse_memory, help_heading = "Memory")]
    pub checkpoint: u64,

    /// Do not compare the output with a scan on the host
    #[arg(long, help_heading = "Output")]
    pub no_verify: bool,
    /// Measure what limits it in the same run: the disk, the copies to and from the
    /// device, a plain loop of read, scan and write; over the whole file, or so
    /// much of it
    #[arg(long, value_name = "SIZE", num_args = 0..=1, require_equals = true, default_missing_value = "16384GiB",
        value_parser = parse_memory, help_heading = "Output")]
    pub measure: Option<u64>,
    /// No progress and no remarks on stderr
    #[arg(long, short, help_heading = "Output")]
    pub quiet: bool,
}

fn parse_memory(text: &str) -> Result<u64, String> {
    match parse_array_size(text, 1) {
        Ok(0) => Err("a size of memory is more than 0 bytes".to_owned()),
        Ok(bytes) => Ok(bytes),
        Err(error) => Err(error.to_string()),
    }
}

/// A device that scans chunks.
trait Chunked {
    fn plan(&self) -> &ChunkPlan;
    fn device_bytes(&self) -> u64;
    fn run(
        &mut self,
        job: Job<'_>,
        keep: &mut dyn FnMut(&Checkpoint) -> io::Result<()>,
    ) -> Result<Checkpoint, Stopped<DeviceError>>;
    /// Of a device that data are copied to.
    fn copy_rates(&mut self, bytes: u64) -> Result<Option<CopyRates>, DeviceError>;
}

/// What is scanned, checked before anything runs.
struct Scan<'a> {
    arguments: &'a ScanArguments,
    file: ArrayFile,
    problem: Problem,
    defined: Defined,
    output_type: ElementType,
    n: u64,
    header: Vec<u8>,
    limits: Limits,
}

/// Scans the file and returns the exit code.
///
/// # Errors
/// When file, output or memory are unusable, or the device is missing or fails.
pub fn scan(arguments: &ScanArguments) -> Result<u8, CliError> {
    let scan = Scan::new(arguments)?;
    let mut console = Console::new(arguments.quiet);
    let identity = scan.identity()?;
    let (partial, start) = Partial::open(&arguments.output, identity.clone(), &scan.header, arguments.resume)?;
    match scan.run(&partial, start, &identity, &mut console) {
        Ok(Ended::Whole(report)) => {
            partial.finish()?;
            let fitted = console.fitted(&report);
            console.print(&fitted)?;
            Ok(EXIT_OK)
        }
        Ok(Ended::Interrupted) => {
            partial.discard_if_empty();
            Ok(EXIT_INTERRUPTED)
        }
        // What is wrong stays, to be looked at.
        Err(error @ CliError::Scan(ScanError::Wrong { .. })) => Err(error),
        Err(error) => {
            partial.discard_if_empty();
            Err(error)
        }
    }
}

/// How a run ended.
enum Ended {
    /// With what is printed of it.
    Whole(String),
    Interrupted,
}

impl<'a> Scan<'a> {
    fn new(arguments: &'a ScanArguments) -> Result<Self, CliError> {
        let file = input::open(&arguments.input, arguments.element)?;
        let output_type = arguments.output_type.unwrap_or(file.element);
        let operator = arguments.operator.unwrap_or_else(|| Operator::usual_of(file.element));
        let problem = Problem::accumulating(operator, file.element, output_type).map_err(ScanError::from)?;
        let definition = Definition::of_numbers(operator, file.element, output_type).map_err(ScanError::from)?;
        let defined = definition.define().map_err(ScanError::from)?;
        let output = &arguments.output;
        let is_npy = input::is_npy(output);
        let reason = match why_not_new(output) {
            Some(reason) => Some(reason.to_owned()),
            None if is_npy && !ElementType::NUMBERS.contains(&output_type) => Some(format!(
                "cannot hold {output_type}: .npy files are written of u8 to f64 alone; choose another type, or a name that does \
                 not end in .npy"
            )),
            None => None,
        };
        if let Some(reason) = reason {
            return Err(CliError::Usage(format!("--output: {} {reason}", output.display())));
        }
        // What is written until the output is whole must not be what is read.
        let is_input = |place: &PathBuf| is_one_file(&file.file, place).unwrap_or(false);
        if let Some(place) = places(output).iter().find(|place| is_input(place)) {
            let (output, place) = (output.display(), place.display());
            return Err(CliError::Usage(format!(
                "--output: {output} is written to {place} first, which is the input; choose another name"
            )));
        }
        let n = file.data_bytes / file.element.bytes() as u64;
        if n.checked_mul(output_type.bytes() as u64).is_none_or(|bytes| bytes > i64::MAX as u64 >> 1) {
            return Err(CliError::Usage(format!("{n} elements of {output_type} are more than a file can have")));
        }
        let header = if is_npy { npy_header(output_type, n) } else { Vec::new() };
        let limits =
            Limits { device_bytes: arguments.device_memory, host_bytes: arguments.host_memory, ..Limits::default() }
                .for_devices(arguments.devices as usize);
        // What no memory is enough for is said before a file is made.
        ChunkPlan::new(defined, arguments.mode, n, &limits, arguments.devices as usize, 0).map_err(ScanError::from)?;
        Ok(Self { arguments, file, problem, defined, output_type, n, header, limits })
    }

    /// Scans what is left, and compares the whole.
    fn run(
        &self,
        partial: &Partial,
        start: Checkpoint,
        identity: &Identity,
        console: &mut Console,
    ) -> Result<Ended, CliError> {
        let arguments = self.arguments;
        let stop = interrupt::watch().map_err(CliError::Interrupt)?;
        let (begin, n) = (start.elements, self.n);
        if begin > 0 {
            console.remark(&format!("going on behind element {begin} of {n}"));
        }
        let measured = match arguments.measure {
            Some(bytes) if n > 0 => Some(self.measure(bytes, stop, console)?),
            _ => None,
        };
        let (mut done, mut passed) = (start, String::new());
        if done.elements < n && !stop.load(Ordering::Relaxed) {
            self.with_device(n, (measured.is_none()).then_some(&*console), &mut |device| {
                (done, passed) = self.pass(device, partial, &done, stop, measured.as_ref())?;
                Ok(())
            })?;
        }
        if done.elements < n {
            partial.keep(&done).map_err(|error| self.stopped(&done, Cause::Keep(error)))?;
            let (done, percent, path) = (done.elements, 100 * done.elements / n, partial.path().display());
            console.remark(&format!(
                "interrupted behind element {done} of {n} ({percent} %), up to which {path} is valid; the same command with \
                 --resume goes on"
            ));
            return Ok(Ended::Interrupted);
        }
        // Somebody may have written the input meanwhile, or put another one in its place.
        let is_one = is_one_file(&self.file.file, &arguments.input).map_err(|error| self.unreadable(error))?;
        if !is_one || self.identity()? != *identity {
            return Err(ScanError::InputChanged { path: arguments.input.clone() }.into());
        }
        let verified = match arguments.no_verify {
            true => Some("not verified (--no-verify)".to_owned()),
            false => self.verify(partial, stop, console)?,
        };
        let Some(verified) = verified else {
            partial.keep(&done).map_err(|error| self.stopped(&done, Cause::Keep(error)))?;
            console.remark("interrupted while it was verified; the same command with --resume does that alone");
            return Ok(Ended::Interrupted);
        };
        let (mode, input, output) = (arguments.mode, arguments.input.display(), arguments.output.display());
        let from = if begin > 0 { format!(", from element {begin} on") } else { String::new() };
        let defined = self.defined;
        Ok(Ended::Whole(format!("{defined}, {mode}, of {input}: {n} elements in {output}{from}\n{passed}{verified}\n")))
    }

    fn unreadable(&self, source: io::Error) -> InputError {
        InputError::Io { path: self.arguments.input.clone(), source }
    }

    /// What the output is of, as the input is now.
    fn identity(&self) -> Result<Identity, CliError> {
        let metadata = self.file.file.metadata().map_err(|error| self.unreadable(error))?;
        let modified = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        let output_header_bytes = self.header.len() as u64;
        Ok(Identity {
            input_bytes: metadata.len(),
            input_modified_ns: modified.map_or(0, |time| time.as_nanos() as u64),
            input_head_sha256: hexadecimal(&Sha256::digest(&self.file.first_bytes)),
            input_type: self.file.element,
            output_type: self.output_type,
            operator: self.problem.instance().map_or(Operator::Sum, |instance| instance.operator()),
            mode: self.arguments.mode,
            output_header_bytes,
            output_bytes: output_header_bytes + self.n * self.output_type.bytes() as u64,
        })
    }

    fn stopped(&self, done: &Checkpoint, source: Cause<DeviceError>) -> ScanError {
        ScanError::Stopped { done: done.elements, n: self.n, source }
    }

    /// The input, opened once for each chunk under way.
    fn source(&self, plan: &ChunkPlan) -> Result<FileArray, CliError> {
        let open = |_| File::open(&self.arguments.input);
        let files = (0..plan.chunks_under_way()).map(open).collect::<Result<_, _>>();
        let stride = plan.chunk_elements() * self.file.element.bytes() as u64;
        Ok(FileArray::new(files.map_err(|error| self.unreadable(error))?, self.file.data_start, stride))
    }

    /// Scans what is left of the file. Returns how far it came, and what is to be said of it.
    fn pass(
        &self,
        device: &mut dyn Chunked,
        partial: &Partial,
        start: &Checkpoint,
        stop: &'static AtomicBool,
        measured: Option<&Measured>,
    ) -> Result<(Checkpoint, String), CliError> {
        let plan = *device.plan();
        let source = self.source(&plan)?;
        let sink = partial.file().try_clone().map_err(|error| self.stopped(start, Cause::Write(error)))?;
        let sink = FileArray::new(vec![sink], self.header.len() as u64, 1);
        let (input_bytes, output_bytes) = (self.file.element.bytes() as u64, self.output_type.bytes() as u64);
        let begin = start.elements;
        let mut console = Console::new(self.arguments.quiet);
        console.start_progress((self.n - begin) * input_bytes);
        console.show_progress(format!("{} of {}", self.defined, self.arguments.input.display()));
        if measured.is_some() {
            self.forget_cached().map_err(|error| self.unreadable(error))?;
        }
        let clock = Instant::now();
        let (mut shown, mut kept) = (begin, begin);
        let job = Job { start: start.clone(), ..Job::new(&source, &sink, stop) };
        let ended = device.run(job, &mut |done| {
            console.advance((done.elements - shown) * input_bytes);
            shown = done.elements;
            if (done.elements - kept) * output_bytes >= self.arguments.checkpoint {
                partial.keep(done)?;
                kept = done.elements;
            }
            Ok(())
        });
        console.end_progress();
        let done = match ended {
            Ok(done) => done,
            Err(Stopped { done, cause }) => {
                // What can still be kept is; on a disk that is full that may be less than was written.
                let kept = partial.keep(&done);
                let done = Checkpoint { elements: partial.kept(), ..done };
                let cause = kept.err().filter(|_| matches!(*cause, Cause::Keep(_))).map_or(*cause, Cause::Keep);
                return Err(self.stopped(&done, cause).into());
            }
        };
        partial.file().sync_data().map_err(|error| self.stopped(&done, Cause::Keep(error)))?;
        let seconds = clock.elapsed().as_secs_f64();
        let report = self.report(device, done.elements - begin, seconds, measured);
        Ok((done, report))
    }

    /// What is printed of a run.
    fn report(&self, device: &dyn Chunked, passed: u64, seconds: f64, measured: Option<&Measured>) -> String {
        let plan = device.plan();
        let sides = [self.file.element, self.output_type].map(|element| passed * element.bytes() as u64);
        let rate = |bytes: u64| significant(bytes as f64 / seconds / 1e9, 8);
        let size = |bytes: u64| {
            let (unit, name) = if bytes < 1 << 20 { (1024.0, "KiB") } else { (1048576.0, "MiB") };
            format_bytes(bytes).unwrap_or_else(|| format!("{:.1} {name}", bytes as f64 / unit))
        };
        let (devices, whose) = match plan.devices() {
            1 => ("one device".to_owned(), "the device's memory"),
            count => (format!("{count} devices"), "each device's memory"),
        };
        let mut text = format!(
            "read {} bytes, wrote {}, in {}: {} GB/s in, {} GB/s out, the disk's sync included\nchunks of {}: {}, at most {} of \
             them under way on {devices}, in {} of {whose} and {} of the host's\n",
            sides[0],
            sides[1],
            short_seconds(seconds),
            rate(sides[0]),
            rate(sides[1]),
            size(plan.chunk_elements() * self.file.element.bytes() as u64),
            plan.chunks_from(self.n - passed),
            plan.chunks_under_way(),
            size(device.device_bytes()),
            size(plan.host_bytes()),
        );
        if let Some(measured) = measured {
            text.push_str(&measured.table(passed as f64 / seconds, self));
        }
        text
    }

    /// Compares the output, which is read back, element by element. `None` when it is stopped.
    fn verify(&self, partial: &Partial, stop: &AtomicBool, console: &mut Console) -> Result<Option<String>, CliError> {
        const BLOCK_ELEMENTS: u64 = 1 << 18;
        let Some(mut reference) = RunningReference::new(self.problem, self.arguments.mode) else {
            return Ok(Some(
                "not verified: sums and products of floats are rounded, in an order of their own".to_owned(),
            ));
        };
        let failed = |source| ScanError::Verify { path: partial.path().to_owned(), source };
        let clone = |file: &File| file.try_clone().map_err(failed);
        let input = FileArray::new(vec![clone(&self.file.file)?], self.file.data_start, 1);
        let output = FileArray::new(vec![clone(partial.file())?], self.header.len() as u64, 1);
        let [from, to] = [self.file.element, self.output_type].map(|element| element.bytes() as u64);
        let (mut inputs, mut outputs) = (Vec::new(), Vec::new());
        console.start_progress(self.n);
        console.show_progress("comparing with a scan on the host".to_owned());
        let start = Instant::now();
        let mut first = 0;
        while first < self.n {
            if stop.load(Ordering::Relaxed) {
                console.end_progress();
                return Ok(None);
            }
            let count = BLOCK_ELEMENTS.min(self.n - first);
            inputs.resize((count * from) as usize, 0);
            outputs.resize((count * to) as usize, 0);
            input.read(0, first * from, &mut inputs).map_err(failed)?;
            output.read(0, first * to, &mut outputs).map_err(failed)?;
            if let Err(source) = reference.compare(&inputs, &outputs) {
                console.end_progress();
                return Err(ScanError::Wrong { path: partial.path().to_owned(), source }.into());
            }
            console.advance(count);
            first += count;
        }
        console.end_progress();
        Ok(Some(format!("all {} elements verified in {}", self.n, short_seconds(start.elapsed().as_secs_f64()))))
    }

    /// So that the disk is measured and not the page cache, which would serve a file that was just written.
    fn forget_cached(&self) -> io::Result<()> {
        #[cfg(target_os = "linux")]
        rustix::fs::fadvise(&self.file.file, 0, None, rustix::fs::Advice::DontNeed)?;
        Ok(())
    }

    /// Measures what limits the scan, over `bytes` of the input.
    fn measure(&self, bytes: u64, stop: &'static AtomicBool, console: &mut Console) -> Result<Measured, CliError> {
        let n = self.n.min(bytes / self.file.element.bytes() as u64).max(1);
        let failed = |what| move |source| CliError::from(ScanError::Measure { what, source });
        let (mode, devices) = (self.arguments.mode, self.arguments.devices as usize);
        let plan = ChunkPlan::new(self.defined, mode, n, &self.limits, devices, 0).map_err(ScanError::from)?;
        let source = self.source(&plan)?;
        let folder = folder_of(&self.arguments.output);
        // A new one each time, as the output is: to write over what is there is another thing. It has no name, and is gone when it is
        // closed.
        let new_file = || -> io::Result<_> {
            let file = tempfile::tempfile_in(folder)?;
            file.set_len(n * self.output_type.bytes() as u64)?;
            let array = FileArray::new(vec![file.try_clone()?], 0, 1);
            Ok((file, array))
        };
        let time_copy = |source: &dyn Source, writes: bool| -> io::Result<f64> {
            let (file, array) = new_file()?;
            self.forget_cached()?;
            let sink: &dyn Sink = if writes { &array } else { &NoFile };
            let start = Instant::now();
            copy(&plan, Job::new(source, sink, stop)).map_err(|stopped| into_io(*stopped.cause))?;
            file.sync_data()?;
            Ok(n as f64 / start.elapsed().as_secs_f64())
        };
        console.remark("measuring the disk, the copies and a plain loop first");
        let mut measured = Measured {
            read: time_copy(&source, false).map_err(failed("reading"))?,
            write: time_copy(&NoFile, true).map_err(failed("writing"))?,
            copy: time_copy(&source, true).map_err(failed("a copy of the file"))?,
            rates: None,
            without_files: 0.0,
            plain_loop: 0.0,
        };
        self.with_device(n, Some(&*console), &mut |device| {
            measured.rates = device.copy_rates(2 << 30).map_err(CliError::Device)?;
            let mut time = |source: &dyn Source, sink: &dyn Sink, is_overlapped, file: Option<&File>| {
                let start = Instant::now();
                let job = Job { is_overlapped, ..Job::new(source, sink, stop) };
                device.run(job, &mut |_| Ok(())).map_err(|stopped| self.stopped(&stopped.done, *stopped.cause))?;
                let synced = file.map_or(Ok(()), File::sync_data);
                synced.map_err(failed("a plain loop"))?;
                Ok::<f64, CliError>(n as f64 / start.elapsed().as_secs_f64())
            };
            // Once before, so that no first use is measured.
            time(&NoFile, &NoFile, true, None)?;
            measured.without_files = time(&NoFile, &NoFile, true, None)?;
            let (file, array) = new_file().map_err(failed("a plain loop"))?;
            self.forget_cached().map_err(failed("a plain loop"))?;
            measured.plain_loop = time(&source, &array, false, Some(&file))?;
            Ok(())
        })?;
        Ok(measured)
    }

    /// Opens the device for a scan of `n` elements and does something with it.
    fn with_device(
        &self,
        n: u64,
        console: Option<&Console>,
        deed: &mut dyn FnMut(&mut dyn Chunked) -> Result<(), CliError>,
    ) -> Result<(), CliError> {
        match self.arguments.device {
            DeviceChoice::Cpu => self.with_cpu(n, deed),
            DeviceChoice::Cuda => with_cuda(self.arguments.devices, |scanners| self.on_gpus(scanners, n, deed))?,
            DeviceChoice::Auto => match with_cuda(self.arguments.devices, |scanners| self.on_gpus(scanners, n, deed)) {
                Ok(done) => done,
                Err(error) => {
                    if let (CliError::NoDevice { source, .. }, Some(console)) = (&error, console) {
                        console.remark(&format!("{source}\nrunning on the CPU device instead\n"));
                    }
                    // Without a CPU device in the build the GPU's absence is what there is to say.
                    let is_absent = |error: &CliError| matches!(error, CliError::NotBuilt { .. });
                    self.with_cpu(n, deed).map_err(|cpu_error| if is_absent(&cpu_error) { error } else { cpu_error })
                }
            },
        }
    }

    #[cfg(feature = "cpu")]
    fn with_cpu(&self, n: u64, deed: &mut dyn FnMut(&mut dyn Chunked) -> Result<(), CliError>) -> Result<(), CliError> {
        use crate::lab::host_chunked::HostChunkedScan;
        use crate::lab::host_scanner::HostScanner;
        let scanners = (0..self.arguments.devices).map(|_| HostScanner::default()).collect();
        let scan = HostChunkedScan::on(scanners, self.defined, self.arguments.mode, n, &self.limits);
        deed(&mut scan.map_err(ScanError::from)?)
    }

    #[cfg(not(feature = "cpu"))]
    fn with_cpu(
        &self,
        _n: u64,
        _deed: &mut dyn FnMut(&mut dyn Chunked) -> Result<(), CliError>,
    ) -> Result<(), CliError> {
        Err(CliError::NotBuilt { device: "CPU device", feature: "cpu" })
    }

    #[cfg(feature = "cuda")]
    fn on_gpus(
        &self,
        scanners: &[crate::cuda::Scanner],
        n: u64,
        deed: &mut dyn FnMut(&mut dyn Chunked) -> Result<(), CliError>,
    ) -> Result<(), CliError> {
        let scan = crate::cuda::ChunkedScan::on(scanners, self.defined, self.arguments.mode, n, &self.limits);
        deed(&mut scan.map_err(|error| match error {
            crate::cuda::CudaError::Chunks(error) => CliError::from(ScanError::from(error)),
            crate::cuda::CudaError::OutOfMemory { needed_bytes, available_bytes, .. } => CliError::Usage(format!(
                "--device-memory: {needed_bytes} bytes more are asked for, and the device has {available_bytes} free; allow less"
            )),
            error => CliError::Device(error.into()),
        })?)
    }

    #[cfg(not(feature = "cuda"))]
    fn on_gpus(
        &self,
        absent: &Infallible,
        _n: u64,
        _deed: &mut dyn FnMut(&mut dyn Chunked) -> Result<(), CliError>,
    ) -> Result<(), CliError> {
        match *absent {}
    }
}

/// Does something with the first GPUs. The outer error says that there are none; that they are fewer is an inner one.
#[cfg(feature = "cuda")]
fn with_cuda(
    devices: u32,
    deed: impl FnOnce(&[crate::cuda::Scanner]) -> Result<(), CliError>,
) -> Result<Result<(), CliError>, CliError> {
    let open = |ordinal: u32| {
        let opened = crate::lab::cuda::harness::open_context(ordinal as usize);
        let scanner = opened.and_then(|(compiler, context)| crate::cuda::Scanner::with_compiler(&context, compiler));
        scanner.map_err(|error| CliError::NoDevice { device: "CUDA", source: error.into() })
    };
    let mut scanners = vec![open(0)?];
    let others = (1..devices).map(open).collect::<Result<Vec<_>, _>>();
    Ok(others.and_then(|others| {
        scanners.extend(others);
        deed(&scanners)
    }))
}

#[cfg(not(feature = "cuda"))]
fn with_cuda(
    _devices: u32,
    _deed: impl FnOnce(&Infallible) -> Result<(), CliError>,
) -> Result<Result<(), CliError>, CliError> {
    Err(CliError::NotBuilt { device: "CUDA device", feature: "cuda-13000" })
}

fn into_io(cause: Cause<Infallible>) -> io::Error {
    match cause {
        Cause::Read(error) | Cause::Write(error) | Cause::Keep(error) => error,
        Cause::Plan(error) => io::Error::other(error),
        Cause::Device(never) => match never {},
    }
}

/// Speeds, in elements a second unless they are of copies.
struct Measured {
    read: f64,
    write: f64,
    /// Reading the one file and writing the other at the same time, without a device.
    copy: f64,
    rates: Option<CopyRates>,
    /// The chunks through the device, with nothing read and nothing written.
    without_files: f64,
    /// Read, scanned and written one after the other.
    plain_loop: f64,
}

impl Measured {
    /// A table, in GB/s of the input but where the output alone is written.
    fn table(&self, scan_rate: f64, scan: &Scan<'_>) -> String {
        let [from, to] = [scan.file.element, scan.output_type].map(|element| element.bytes() as f64);
        let mut rows = vec![
            ("the disk: reads", self.read * from),
            ("the disk: writes and syncs", self.write * to),
            ("the disk: copies the file by the same chunks", self.copy * from),
        ];
        let mut limit = self.copy;
        if let Some(rates) = self.rates {
            rows.push(("PCIe: to the device(s)", rates.to_device));
            rows.push(("PCIe: from the device(s)", rates.from_device));
            rows.push(("PCIe: each way at once", rates.each_way_at_once));
            limit = limit.min(rates.each_way_at_once / from.max(to));
        }
        rows.push(("chunks through the device(s) without files", self.without_files * from));
        rows.push(("a plain loop: read, scan, write", self.plain_loop * from));
        rows.push(("this scan", scan_rate * from));
        let lines = rows.iter().map(|(name, rate)| format!("  {name:<48}{:>8} GB/s\n", significant(rate / 1e9, 8)));
        let of_what = if limit < self.copy { "PCIe each way at once" } else { "the disk's copy" };
        format!(
            "{}{:.0} % of the slower of disk and PCIe ({of_what}), {:.2} times the plain loop\n",
            lines.collect::<String>(),
            100.0 * scan_rate / limit,
            scan_rate / self.plain_loop
        )
    }
}

#[cfg(feature = "cpu")]
impl Chunked for crate::lab::host_chunked::HostChunkedScan {
    fn plan(&self) -> &ChunkPlan {
        Self::plan(self)
    }

    fn device_bytes(&self) -> u64 {
        Self::plan(self).device_bytes()
    }

    fn run(
        &mut self,
        job: Job<'_>,
        keep: &mut dyn FnMut(&Checkpoint) -> io::Result<()>,
    ) -> Result<Checkpoint, Stopped<DeviceError>> {
        Self::run(self, job, keep)
    }

    fn copy_rates(&mut self, _bytes: u64) -> Result<Option<CopyRates>, DeviceError> {
        Ok(None)
    }
}

#[cfg(feature = "cuda")]
impl Chunked for crate::cuda::ChunkedScan<'_> {
    fn plan(&self) -> &ChunkPlan {
        Self::plan(self)
    }

    fn device_bytes(&self) -> u64 {
        Self::device_bytes(self)
    }

    fn run(
        &mut self,
        job: Job<'_>,
        keep: &mut dyn FnMut(&Checkpoint) -> io::Result<()>,
    ) -> Result<Checkpoint, Stopped<DeviceError>> {
        Self::run(self, job, keep).map_err(|Stopped { done, cause }| {
            let cause = match *cause {
                Cause::Read(error) => Cause::Read(error),
                Cause::Write(error) => Cause::Write(error),
                Cause::Keep(error) => Cause::Keep(error),
                Cause::Plan(error) => Cause::Plan(error),
                Cause::Device(error) => Cause::Device(error.into()),
            };
            Stopped { done, cause: Box::new(cause) }
        })
    }

    fn copy_rates(&mut self, bytes: u64) -> Result<Option<CopyRates>, DeviceError> {
        Ok(Some(Self::copy_rates(self, bytes)?))
    }
}
