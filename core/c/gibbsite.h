/* gibbsite for C: label sequences with a model image and learn from corrections, ask fields and Gaussian CRFs. Made of core/c/src by cbindgen: see core/c/cbindgen.toml.
 *
 * Handles live in memory of the caller; nothing is allocated. Every function returns a status, and its results are written only if
 * that is GIBBSITE_STATUS_OK. Image, handles and memory must stay where they are as long as handles are used. */

#ifndef GIBBSITE_H
#define GIBBSITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// How a call ended.
enum gibbsite_status
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    // Done.
    GIBBSITE_STATUS_OK = 0,
    // A pointer is null or not aligned, or a handle was not made.
    GIBBSITE_STATUS_POINTER = 1,
    // The words are no model image.
    GIBBSITE_STATUS_NOT_AN_IMAGE = 2,
    // The image is for machines of the other byte order.
    GIBBSITE_STATUS_ENDIANNESS = 3,
    // The image has another major version.
    GIBBSITE_STATUS_VERSION = 4,
    // The image is cut off or damaged.
    GIBBSITE_STATUS_DAMAGED = 5,
    // The image's weights are of another kind than the call is for.
    GIBBSITE_STATUS_SCALAR = 6,
    // Memory or room for the answer is too small.
    GIBBSITE_STATUS_MEMORY = 7,
    // The model has no such attribute, label or name.
    GIBBSITE_STATUS_UNKNOWN = 8,
    // A value or a score is not a finite number.
    GIBBSITE_STATUS_BAD_VALUE = 9,
    // More items than the image was made for.
    GIBBSITE_STATUS_TOO_LONG = 10,
    // No labelling is possible.
    GIBBSITE_STATUS_IMPOSSIBLE = 11,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum gibbsite_status gibbsite_status;
#else
typedef uint32_t gibbsite_status;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// A model: room for what `gibbsite_open` makes. Not to be looked into.
typedef struct gibbsite_model {
    // Not to be looked into.
    uint64_t opaque[6];
} gibbsite_model;

// Facts about a model.
typedef struct gibbsite_facts {
    // Labels.
    uint32_t labels;
    // Attributes.
    uint32_t attributes;
    // The longest sequence that memory was planned for.
    uint32_t longest;
    // 0: `f32`, 1: fixed point in 16 bits, 2: in 8 bits.
    uint32_t scalar;
    // Words of memory that `gibbsite_marginals` or `gibbsite_marginals_fixed` needs.
    uint32_t memory_marginals;
    // Floats of memory that `gibbsite_filter_start` needs; 0 in fixed point.
    uint32_t memory_filter;
    // What a unit of fixed point is worth, in natural logarithms; 1 for `f32`.
    float unit;
} gibbsite_facts;

// A sequence that is being labelled: room for what `gibbsite_start` makes. Not to be looked into.
typedef struct gibbsite_decoder {
    // Not to be looked into.
    uint64_t opaque[36];
} gibbsite_decoder;

// An attribute of an item and its value, for images with `f32` weights.
typedef struct gibbsite_feature {
    // The attribute's number.
    uint32_t attribute;
    // Its value.
    float value;
} gibbsite_feature;

// An attribute of an item and its value, for images in fixed point.
typedef struct gibbsite_feature_fixed {
    // The attribute's number.
    uint32_t attribute;
    // Its value in Q16.16: 65536 is 1.
    int32_t value;
} gibbsite_feature_fixed;

// A sequence that is being followed: room for what `gibbsite_filter_start` makes. Not to be looked into.
typedef struct gibbsite_filter {
    // Not to be looked into.
    uint64_t opaque[10];
} gibbsite_filter;

// Facts about a field.
typedef struct gibbsite_field_facts {
    // Outputs.
    uint32_t outputs;
    // Labels of all outputs together: entries of all marginals.
    uint32_t labels;
    // Attributes.
    uint32_t attributes;
    // 1 if the image has a junction tree, so that the exact functions answer.
    uint32_t exact;
    // Words of memory that `gibbsite_field_exact_memory` needs.
    uint32_t memory_exact_memory;
    // Words of memory that `gibbsite_field_loopy` needs; 0 in fixed point.
    uint32_t memory_loopy;
    // Words of memory that `gibbsite_field_icm` and `gibbsite_field_local` need.
    uint32_t memory_icm;
    // 0: `f32`, 1: fixed point in 16 bits, 2: in 8 bits.
    uint32_t scalar;
    // What a unit of fixed point is worth, in natural logarithms; 1 for `f32`.
    float unit;
} gibbsite_field_facts;

// Facts about a Gaussian CRF.
typedef struct gibbsite_gaussian_facts {
    // Inputs.
    uint32_t inputs;
    // Outputs.
    uint32_t outputs;
    // Floats of memory that `gibbsite_gaussian_mean` needs.
    uint32_t memory;
    // Floats of memory that `gibbsite_gaussian_revise` needs.
    uint32_t memory_revised;
} gibbsite_gaussian_facts;

// What a device has learned: room for what `gibbsite_overlay_open` makes. Not to be looked into.
typedef struct gibbsite_overlay {
    // Not to be looked into.
    uint64_t opaque[12];
} gibbsite_overlay;

// An item for the functions of overlays.
typedef struct gibbsite_item {
    // Attributes of the image with values.
    const struct gibbsite_feature *features;
    // How many.
    size_t count;
    // Slots of the overlay with values: what is learned about this item beside the labels' biases.
    const struct gibbsite_feature *learned;
    // How many.
    size_t learned_count;
    // The label of the item before; negative if there is none.
    int32_t before;
    // The label of the item after; negative if there is none.
    int32_t after;
} gibbsite_item;

// How fast and how far an overlay learns: finite numbers that are not negative.
typedef struct gibbsite_online_params {
    // The first step's length.
    float rate;
    // Steps become shorter as `rate / (1 + decay·n)`; 0 keeps them as they are, for data that changes.
    float decay;
    // Each weight is pulled towards the image's by this, for each item.
    float l2;
    // Weights that are not needed become 0.
    float l1;
} gibbsite_online_params;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Checks an image of `count` words and makes a model of it. The words are used where they are.
gibbsite_status gibbsite_open(struct gibbsite_model *model, const uint32_t *words, size_t count);

// Tells how many labels and attributes a model has, and what its weights are.
gibbsite_status gibbsite_facts_of(const struct gibbsite_model *model, struct gibbsite_facts *facts);

// Tells how much memory a decoder needs: 32-bit words of scores, and bytes of back pointers. `lag` as in `gibbsite_start`.
gibbsite_status gibbsite_memory(const struct gibbsite_model *model,
                                int32_t lag,
                                size_t *scores,
                                size_t *back);

// Finds an attribute by its name of `length` bytes.
gibbsite_status gibbsite_attribute(const struct gibbsite_model *model,
                                   const uint8_t *name,
                                   size_t length,
                                   uint32_t *attribute);

// Writes the name of a label and a zero byte to `room` bytes at `name`.
gibbsite_status gibbsite_label_name(const struct gibbsite_model *model, uint8_t label, uint8_t *name, size_t room);

// Makes a decoder in memory that `gibbsite_memory` has told the size of. With `lag` at least 0 the label of an item is known `lag`
// items later; with `lag` -1 all labels are known at the end, of at most as many items as the image was made for.
gibbsite_status gibbsite_start(struct gibbsite_decoder *decoder,
                               const struct gibbsite_model *model,
                               int32_t lag,
                               uint32_t *scores,
                               size_t scores_count,
                               uint8_t *back,
                               size_t back_count);

// Takes the next item of an image with `f32` weights. `due` tells whether a label is known, which is then in `label`.
gibbsite_status gibbsite_push(struct gibbsite_decoder *decoder,
                              const struct gibbsite_feature *features,
                              size_t count,
                              bool *due,
                              uint8_t *label);

// Takes the next item of an image in fixed point. `due` tells whether a label is known, which is then in `label`.
gibbsite_status gibbsite_push_fixed(struct gibbsite_decoder *decoder,
                                    const struct gibbsite_feature_fixed *features,
                                    size_t count,
                                    bool *due,
                                    uint8_t *label);

// Writes the labels that are still to come to `labels`, how many to `count`, and begins another sequence.
gibbsite_status gibbsite_finish(struct gibbsite_decoder *decoder, uint8_t *labels, size_t room, size_t *count);

// The scores of an item's labels by its attributes, `labels` floats: a row for `gibbsite_marginals`, and scores for
// `gibbsite_filter_push`. Zeros on an error.
gibbsite_status gibbsite_score(const struct gibbsite_model *model,
                               const struct gibbsite_feature *features,
                               size_t count,
                               float *scores);

// `gibbsite_score` in fixed point: units of the model's facts, a row for `gibbsite_marginals_fixed`.
gibbsite_status gibbsite_score_fixed(const struct gibbsite_model *model,
                                     const struct gibbsite_feature_fixed *features,
                                     size_t count,
                                     int32_t *scores);

// The probability of each label of each item, in the place of the scores: `rows` are `items` rows of `gibbsite_score`, one
// after the other. `memory` are `memory_marginals` floats of the model's facts. After `GIBBSITE_STATUS_IMPOSSIBLE` the rows hold nothing of
// use, after other errors they are as before. Scores more than 55 (in natural logarithms) behind the best of their row count as so far behind.
gibbsite_status gibbsite_marginals(const struct gibbsite_model *model,
                                   float *rows,
                                   size_t items,
                                   float *memory,
                                   size_t memory_count);

// The logarithm of the probability of each label of each item, in units of the model's facts and in the place of the scores, as
// `gibbsite_marginals`, by additions, comparisons and a table. What is impossible is -2^29. `memory` are `memory_marginals` words of the facts.
gibbsite_status gibbsite_marginals_fixed(const struct gibbsite_model *model,
                                         int32_t *rows,
                                         size_t items,
                                         int32_t *memory,
                                         size_t memory_count);

// Tells how many words of memory `gibbsite_n_best` needs for `items` items.
gibbsite_status gibbsite_n_best_memory(const struct gibbsite_model *model, size_t items, size_t n, size_t *needed);

// The `n` best labellings of a sequence, best first, of a model with `f32` weights: `rows` are `items` rows of `gibbsite_score`, one after the other.
// Writes how many labellings there are to `found` (fewer than `n` if no more are possible), `items` labels of each to `labels`, one
// labelling after the other, and the score of each to `scores`.
gibbsite_status gibbsite_n_best(const struct gibbsite_model *model,
                                const float *rows,
                                size_t items,
                                size_t n,
                                uint32_t *labels,
                                float *scores,
                                size_t *found,
                                uint32_t *memory,
                                size_t memory_count);

// Makes a filter of a model with `f32` weights, for sequences without an end. `memory` are `memory_filter` floats of the model's facts.
gibbsite_status gibbsite_filter_start(struct gibbsite_filter *filter,
                                      const struct gibbsite_model *model,
                                      float *memory,
                                      size_t memory_count);

// Takes the next item, by the `labels` scores that `gibbsite_score` gives it, and writes the probability of each of its labels, given this
// item and those before. On an error the filter is as before.
gibbsite_status gibbsite_filter_push(struct gibbsite_filter *filter,
                                     const float *scores,
                                     size_t labels,
                                     float *probabilities);

// Checks an image of `count` words that holds a field and makes a model of it, for the functions below. The words are used where they are.
gibbsite_status gibbsite_field_open(struct gibbsite_model *model,
                                    const uint32_t *words,
                                    size_t count);

// Tells how many outputs, labels and attributes a field has, and how much memory its functions need.
gibbsite_status gibbsite_field_facts_of(const struct gibbsite_model *model, struct gibbsite_field_facts *facts);

// Tells how many words of memory `gibbsite_field_marginals` and `gibbsite_field_best` need.
gibbsite_status gibbsite_field_exact_memory(const struct gibbsite_model *model,
                                            uint32_t *memory,
                                            size_t memory_count,
                                            size_t *needed);

// Finds an attribute of a field by its name of `length` bytes.
gibbsite_status gibbsite_field_attribute(const struct gibbsite_model *model,
                                         const uint8_t *name,
                                         size_t length,
                                         uint32_t *attribute);

// The exact probability of each label of each output, one output after the other. `known` has for each output its label, or -1
// where that is not known; null if none is.
gibbsite_status gibbsite_field_marginals(const struct gibbsite_model *model,
                                         const struct gibbsite_feature *features,
                                         size_t count,
                                         const int32_t *known,
                                         float *marginals,
                                         uint32_t *memory,
                                         size_t memory_count);

// `gibbsite_field_marginals` in fixed point: logarithms of the probabilities, in units of the field's facts.
gibbsite_status gibbsite_field_marginals_fixed(const struct gibbsite_model *model,
                                               const struct gibbsite_feature_fixed *features,
                                               size_t count,
                                               const int32_t *known,
                                               int32_t *logarithms,
                                               uint32_t *memory,
                                               size_t memory_count);

// The most probable labels of all outputs together, exactly. `known` as in `gibbsite_field_marginals`.
gibbsite_status gibbsite_field_best(const struct gibbsite_model *model,
                                    const struct gibbsite_feature *features,
                                    size_t count,
                                    const int32_t *known,
                                    uint32_t *labels,
                                    uint32_t *memory,
                                    size_t memory_count);

// `gibbsite_field_best` in fixed point.
gibbsite_status gibbsite_field_best_fixed(const struct gibbsite_model *model,
                                          const struct gibbsite_feature_fixed *features,
                                          size_t count,
                                          const int32_t *known,
                                          uint32_t *labels,
                                          uint32_t *memory,
                                          size_t memory_count);

// Estimates of what `gibbsite_field_marginals` computes, by at most `iterations` rounds of belief propagation: for fields that are too
// wide for a junction tree. `converged` tells whether the messages came to rest.
gibbsite_status gibbsite_field_loopy(const struct gibbsite_model *model,
                                     const struct gibbsite_feature *features,
                                     size_t count,
                                     const int32_t *known,
                                     uint32_t iterations,
                                     float *marginals,
                                     bool *converged,
                                     uint32_t *memory,
                                     size_t memory_count);

// Labels that no change of a single one makes more probable, from those in `labels` on, in at most `sweeps` rounds. `known` as in
// `gibbsite_field_marginals`.
gibbsite_status gibbsite_field_icm(const struct gibbsite_model *model,
                                   const struct gibbsite_feature *features,
                                   size_t count,
                                   const int32_t *known,
                                   uint32_t sweeps,
                                   uint32_t *labels,
                                   uint32_t *memory,
                                   size_t memory_count);

// `gibbsite_field_icm` in fixed point.
gibbsite_status gibbsite_field_icm_fixed(const struct gibbsite_model *model,
                                         const struct gibbsite_feature_fixed *features,
                                         size_t count,
                                         const int32_t *known,
                                         uint32_t sweeps,
                                         uint32_t *labels,
                                         uint32_t *memory,
                                         size_t memory_count);

// The probability of each label of one output, given the labels of all others in `labels` (its own there does not matter).
gibbsite_status gibbsite_field_local(const struct gibbsite_model *model,
                                     const struct gibbsite_feature *features,
                                     size_t count,
                                     const uint32_t *labels,
                                     uint32_t output,
                                     float *probabilities,
                                     uint32_t *memory,
                                     size_t memory_count);

// `gibbsite_field_local` in fixed point: logarithms of the probabilities, in units of the field's facts.
gibbsite_status gibbsite_field_local_fixed(const struct gibbsite_model *model,
                                           const struct gibbsite_feature_fixed *features,
                                           size_t count,
                                           const uint32_t *labels,
                                           uint32_t output,
                                           int32_t *logarithms,
                                           uint32_t *memory,
                                           size_t memory_count);

// Checks an image of `count` words that holds a Gaussian CRF and makes a model of it, for the functions below. The words are used where they are.
gibbsite_status gibbsite_gaussian_open(struct gibbsite_model *model,
                                       const uint32_t *words,
                                       size_t count);

// Tells how many inputs and outputs a Gaussian CRF has, and how much memory its functions need.
gibbsite_status gibbsite_gaussian_facts_of(const struct gibbsite_model *model, struct gibbsite_gaussian_facts *facts);

// The mean of each output for `inputs` inputs at `x`, and if `deviations` is not null their standard deviations.
gibbsite_status gibbsite_gaussian_mean(const struct gibbsite_model *model,
                                       const float *x,
                                       size_t inputs,
                                       float *mean,
                                       float *deviations,
                                       float *memory,
                                       size_t memory_count);

// As `gibbsite_gaussian_mean`, when the outputs with `known` (one for each output) have the values in `y`.
gibbsite_status gibbsite_gaussian_revise(const struct gibbsite_model *model,
                                         const float *x,
                                         size_t inputs,
                                         const bool *known,
                                         const float *y,
                                         float *mean,
                                         float *deviations,
                                         float *memory,
                                         size_t memory_count);

// Makes an overlay for a model with `f32` weights over `weights_count` floats of memory, of which `labels · (1 + slots)` are used: zeros, or
// weights that were learned before in `steps` steps (0 for zeros). First the biases of all labels, then a row of labels for each slot.
gibbsite_status gibbsite_overlay_open(struct gibbsite_overlay *overlay,
                                      const struct gibbsite_model *model,
                                      uint32_t slots,
                                      float *weights,
                                      size_t weights_count,
                                      uint32_t steps);

// Tells where the weights of an overlay are, how many, and after how many steps: what there is to save.
gibbsite_status gibbsite_overlay_weights(const struct gibbsite_overlay *overlay,
                                         const float **weights,
                                         size_t *count,
                                         uint32_t *steps);

// One step towards the label of an item, given the labels of its neighbours. Writes `log P(label)` before the step to
// `log_probability`, if that is not null. `memory` are twice as many floats as there are labels. On an error nothing is learned.
gibbsite_status gibbsite_overlay_learn(struct gibbsite_overlay *overlay,
                                       const struct gibbsite_item *item,
                                       uint8_t label,
                                       const struct gibbsite_online_params *params,
                                       float *log_probability,
                                       float *memory,
                                       size_t memory_count);

// The scores of an item's labels, `labels` floats: those of its attributes in the image, what was learned about its slots, and
// those of its neighbours' labels, if it has some. Zeros on an error. Without neighbours they are a row for `gibbsite_marginals`,
// and scores for `gibbsite_filter_push`; with both neighbours the largest is the label that is best between them.
gibbsite_status gibbsite_overlay_score(const struct gibbsite_overlay *overlay,
                                       const struct gibbsite_item *item,
                                       float *scores);

// `gibbsite_push` with what was learned about the item's slots; its neighbours' labels are not looked at. The decoder is one that
// was started on the overlay's model.
gibbsite_status gibbsite_overlay_push(const struct gibbsite_overlay *overlay,
                                      struct gibbsite_decoder *decoder,
                                      const struct gibbsite_item *item,
                                      bool *due,
                                      uint8_t *label);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* GIBBSITE_H */
