//! What scans do to a photograph: the cumulated histogram equalises it, and a summed-area table, a scan of the rows and then one of the
//! columns, has the mean of any neighbourhood from four of its elements. Over slices on the CPU device, each step compared with the
//! loop that it stands for; pictures go into the folder, if one is named:
//!
//!     cargo run --release --example photograph -- FOLDER [PHOTOGRAPH.png]
//!
//! On a GPU the same definitions run by `Scanner::run` over cudarc's slices: the calls have the same names.

mod check;
mod picture;

use check::{Outcome, checked};
use lookback::element::{Definition, ElementType, Operator};
use lookback::lab::host_scanner::HostScanner;
use lookback::run::AnyScanner;
use picture::{Drawing, arguments, keep};
use std::error::Error;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

/// Pixels on each side of the middle of a neighbourhood.
const RADIUS: usize = 12;
/// Sums of as many pixels fit into 32 bits.
const MOST_PIXELS: usize = 1 << 24;

/// Levels of grey from 0, black, to 255, row by row.
struct Picture {
    width: usize,
    grey: Vec<u8>,
}

impl Picture {
    fn height(&self) -> usize {
        self.grey.len() / self.width
    }

    /// Reads a PNG. Of a coloured one the grey is the mean of red, green and blue; what is transparent is taken for opaque.
    fn read(path: &Path) -> Result<Self, Box<dyn Error>> {
        let refused = |reason: &dyn std::fmt::Display| format!("{}: {reason}", path.display());
        let file = File::open(path).map_err(|error| refused(&error))?;
        let mut decoder = png::Decoder::new(BufReader::new(file));
        decoder.set_transformations(png::Transformations::normalize_to_color8());
        let mut reader = decoder.read_info().map_err(|error| refused(&error))?;
        let (width, height) = (reader.info().width as usize, reader.info().height as usize);
        if width < 2 || height < 2 || width.saturating_mul(height) > MOST_PIXELS {
            return Err(refused(&format!("{width} x {height} pixels: give 2 x 2 or more, up to {MOST_PIXELS}")).into());
        }
        let bytes = reader.output_buffer_size().ok_or_else(|| refused(&"more than fits into memory"))?;
        let mut samples = vec![0; bytes];
        let frame = reader.next_frame(&mut samples).map_err(|error| refused(&error))?;
        let pixels = samples.chunks_exact(frame.color_type.samples()).take(width * height);
        let grey = pixels.map(|pixel| match *pixel {
            [red, green, blue] | [red, green, blue, _] => {
                ((u32::from(red) + u32::from(green) + u32::from(blue)) / 3) as u8
            }
            _ => pixel[0],
        });
        let picture = Self { width, grey: grey.collect() };
        if picture.grey.len() < width * height {
            return Err(refused(&"its first picture does not fill it").into());
        }
        Ok(picture)
    }

    /// A picture of the same size.
    fn with(&self, grey: impl Iterator<Item = u8>) -> Self {
        Self { width: self.width, grey: grey.collect() }
    }
}

/// How many pixels are as dark as each of the 256 levels, or darker.
fn cumulated_histogram(scanner: &mut HostScanner, picture: &Picture) -> Result<Vec<u32>, Box<dyn Error>> {
    let levels = Definition::byte_histogram::<u8, u32>()?.cumulated().define()?;
    let mut counts = vec![0_u32; 256];
    scanner.run(levels).input(&picture.grey).output(&mut counts).histogram()?;
    Ok(counts)
}

/// The same as a loop.
fn counted(picture: &Picture) -> Vec<u32> {
    let mut counts = vec![0_u32; 256];
    picture.grey.iter().for_each(|&level| counts[usize::from(level)] += 1);
    let mut sum = 0;
    counts.iter_mut().for_each(|count| {
        sum += *count;
        *count = sum;
    });
    counts
}

/// The level that equalises: 0 for the darkest pixels, and for each other one by how many there are up to its level, as far as 255
/// for all.
fn equalising(cumulated: &[u32]) -> impl Fn(u8) -> u8 {
    let darkest = cumulated.iter().copied().find(|&count| count > 0).unwrap_or(0);
    let others = u64::from(cumulated[255] - darkest).max(1);
    move |level| {
        let below = u64::from(cumulated[usize::from(level)].saturating_sub(darkest));
        ((below * 255 + others / 2) / others) as u8
    }
}

/// How far a cumulated histogram is from a straight line where it is furthest, in percent of the pixels.
fn bend(cumulated: &[u32]) -> f64 {
    let off =
        |(level, &count): (usize, &u32)| (f64::from(count) / f64::from(cumulated[255]) - level as f64 / 255.0).abs();
    100.0 * cumulated.iter().enumerate().map(off).fold(0.0, f64::max)
}

/// The sum of all pixels left of each one and above it, itself included.
struct SummedArea {
    width: usize,
    sums: Vec<u32>,
}

impl SummedArea {
    fn of(scanner: &mut HostScanner, picture: &Picture) -> Result<Self, Box<dyn Error>> {
        let along_rows = Definition::of_numbers(Operator::Sum, ElementType::U8, ElementType::U32)?.define()?;
        let down_columns = Definition::of_numbers(Operator::Sum, ElementType::U32, ElementType::U32)?.define()?;
        let mut sums = vec![0_u32; picture.grey.len()];
        scanner.run(along_rows).input(&picture.grey).output(&mut sums).rows(picture.width).inclusive()?;
        scanner.run(down_columns).in_place(&mut sums).columns(picture.width).inclusive()?;
        Ok(Self { width: picture.width, sums })
    }

    /// The mean of the pixels from column `left` to below `right` and from row `top` to below `bottom`, by four elements.
    fn mean(&self, (left, right): (usize, usize), (top, bottom): (usize, usize)) -> u8 {
        let before = |x: usize, y: usize| if x == 0 || y == 0 { 0 } else { self.sums[(y - 1) * self.width + x - 1] };
        let sum = before(right, bottom) - before(left, bottom) - (before(right, top) - before(left, top));
        (sum / ((right - left) * (bottom - top)) as u32) as u8
    }

    /// The picture at half its width and height, as it is kept: means of four pixels.
    fn halved(&self) -> Picture {
        let (width, height) = (self.width, self.sums.len() / self.width);
        let half = |place| (2 * place, 2 * place + 2);
        let grey = (0..height / 2).flat_map(|y| (0..width / 2).map(move |x| self.mean(half(x), half(y)))).collect();
        Picture { width: width / 2, grey }
    }
}

/// From where to where a neighbourhood reaches, of a picture so long in that direction.
fn around(place: usize, length: usize) -> (usize, usize) {
    (place.saturating_sub(RADIUS), (place + RADIUS + 1).min(length))
}

/// The mean of each pixel's neighbourhood, with as much work for a large one as for a small one.
fn blurred(picture: &Picture, table: &SummedArea) -> Picture {
    let (width, height) = (picture.width, picture.height());
    let means =
        (0..picture.grey.len()).map(|place| table.mean(around(place % width, width), around(place / width, height)));
    picture.with(means)
}

/// Whether a pixel is darker than its neighbourhood by more than an eighth, as ink on paper is, wherever the light falls.
fn is_ink(level: u8, mean: u8) -> bool {
    8 * u32::from(level) < 7 * u32::from(mean)
}

/// Pictures side by side as a PNG; what is between them is transparent.
fn side_by_side(pictures: &[&Picture]) -> Result<Vec<u8>, Box<dyn Error>> {
    const GAP: usize = 8;
    let rows = pictures.iter().map(|picture| picture.height()).min().unwrap_or(0);
    let width = pictures.iter().map(|picture| picture.width + GAP).sum::<usize>().saturating_sub(GAP);
    let mut pixels = Vec::new();
    for y in 0..rows {
        for (place, picture) in pictures.iter().enumerate() {
            pixels.extend(if place == 0 { &[][..] } else { &[0; 2 * GAP] });
            let row = &picture.grey[y * picture.width..][..picture.width];
            pixels.extend(row.iter().flat_map(|&level| [level, 255]));
        }
    }
    let mut png = Vec::new();
    let mut encoder = png::Encoder::new(&mut png, width as u32, rows as u32);
    encoder.set_color(png::ColorType::GrayscaleAlpha);
    encoder.set_compression(png::Compression::High);
    encoder.write_header()?.write_image_data(&pixels)?;
    Ok(png)
}

/// Both histograms, and both cumulated.
fn chart(before: &[u32], after: &[u32]) -> Vec<u8> {
    let [bend_before, bend_after] = [before, after].map(bend);
    let title = format!(
        "Equalised, the cumulated histogram is {bend_after:.1} % off a straight line, before it was {bend_before:.1} %"
    );
    let mut drawing = Drawing::new(760, 330, &title);
    let (width, height, top) = (320.0, 220.0, 64.0);
    for (left, name, cumulated) in [(56.0, "the photograph", before), (424.0, "equalised", after)] {
        let pixels = f64::from(cumulated[255]);
        let counts: Vec<f64> = cumulated
            .iter()
            .scan(0, |sum, &count| Some(f64::from(count - std::mem::replace(sum, count)) / pixels))
            .collect();
        let most = counts.iter().copied().fold(0.0, f64::max);
        for percent in [0, 25, 50, 75, 100] {
            let y = top + height * (1.0 - f64::from(percent) / 100.0);
            drawing.grid((left, y), (left + width, y));
            drawing.text((left - 6.0, y + 4.0), "end", "", &format!("{percent} %"));
        }
        for level in [0, 64, 128, 192, 255] {
            let x = left + width * f64::from(level) / 255.0;
            drawing.text((x, top + height + 18.0), "middle", "", &level.to_string());
        }
        let bar = width / 256.0;
        drawing.rectangles(counts.iter().enumerate().filter(|&(_, &count)| count > 0.0).map(|(level, count)| {
            let tall = height * count / most;
            [left + bar * level as f64, top + height - tall, bar, tall]
        }));
        let corner = |(level, &count): (usize, &u32)| {
            (left + width * level as f64 / 255.0, top + height * (1.0 - f64::from(count) / pixels))
        };
        drawing.line(cumulated.iter().enumerate().map(corner));
        let bars = format!("{name}, bars up to {:.1} %", 100.0 * most);
        drawing.text((left, top - 12.0), "start", "", &bars);
        drawing.text((left + width, top - 12.0), "end", "line-text", "cumulated");
    }
    drawing.text((400.0, top + height + 38.0), "middle", "", "level of grey, from black to white");
    drawing.finish()
}

fn main() -> Outcome {
    let (folder, path) = arguments(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/data/photograph.png"))?;
    let folder = folder.as_deref();
    let photograph = Picture::read(&path)?;
    let (width, height) = (photograph.width, photograph.height());
    let scanner = &mut HostScanner::default();

    let before = cumulated_histogram(scanner, &photograph)?;
    let is_right = before == counted(&photograph);
    checked("the cumulated histogram", is_right, &format!("{width} x {height} pixels"))?;

    let equalised = photograph.with(photograph.grey.iter().copied().map(equalising(&before)));
    let after = cumulated_histogram(scanner, &equalised)?;
    let found = format!("{:.1} % off a straight line, before {:.1} %", bend(&after), bend(&before));
    checked("of the equalised one", after == counted(&equalised), &found)?;

    let table = SummedArea::of(scanner, &photograph)?;
    let mut expected = table.sums.clone();
    let mut along = 0;
    for (place, &level) in photograph.grey.iter().enumerate() {
        along = if place % width == 0 { 0 } else { along } + u32::from(level);
        expected[place] = along + if place < width { 0 } else { expected[place - width] };
    }
    checked("the summed-area table", table.sums == expected, &format!("{} in all", expected[expected.len() - 1]))?;

    let means = blurred(&photograph, &table);
    let one_by_one = (0..width * height).map(|place| {
        let ((left, right), (top, bottom)) = (around(place % width, width), around(place / width, height));
        let rows = (top..bottom).map(|y| &photograph.grey[y * width..][left..right]);
        (rows.flatten().map(|&level| u32::from(level)).sum::<u32>() / ((right - left) * (bottom - top)) as u32) as u8
    });
    let side = 2 * RADIUS + 1;
    let is_right = one_by_one.eq(means.grey.iter().copied());
    checked("means of neighbourhoods", is_right, &format!("{side} x {side} pixels, by four of the table's elements"))?;
    let drawn =
        photograph.grey.iter().zip(&means.grey).map(|(&level, &mean)| if is_ink(level, mean) { 0 } else { 255 });
    let drawn = photograph.with(drawn);

    let mut halved = |picture: &Picture| Ok::<_, Box<dyn Error>>(SummedArea::of(scanner, picture)?.halved());
    let [photograph, equalised, means, drawn] = [table.halved(), halved(&equalised)?, halved(&means)?, halved(&drawn)?];
    keep(folder, "photograph-equalised.png", &side_by_side(&[&photograph, &equalised])?)?;
    keep(folder, "photograph-histograms.svg", &chart(&before, &after))?;
    keep(folder, "photograph-neighbourhoods.png", &side_by_side(&[&photograph, &means, &drawn])?)
}
