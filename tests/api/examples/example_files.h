// Writes the files that the examples read.
#pragma once

#include <string>

namespace tfjob::examples {

// Writes small files of all formats to the folder:
//   fashion/            the four files of Fashion-MNIST, with 4 images each
//   x.npy, y.npy        8 points of 2 coordinates, and their classes
//   houses.csv          4 rows: area, rooms, city, price
//   points.tfrecord     8 examples with the features `x` (2 numbers) and `class`
//   points.jsonl        the same, as JSON objects
//   photos/cat, photos/dog   2 PNG images each
//   stories.txt         8 lines of text
//   reviews/bad, reviews/good   2 files of text each
void WriteFiles(const std::string& folder);

}  // namespace tfjob::examples
