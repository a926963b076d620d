//! What every label keeps, in each format.
use super::*;

#[test]
#[ignore = "writes files to look at"]
fn write_samples() {
    let order = sample::order();
    let number = sample::number("EC7K2M9QX4T8WD0");
    let data = sample::data(&order, &number);
    let folder = std::env::var("LABEL_SAMPLES").unwrap();
    for format in LabelFormat::ALL {
        let path = format!("{folder}/label.{}", format.extension());
        std::fs::write(path, draw(&data, format).unwrap()).unwrap();
    }
}
