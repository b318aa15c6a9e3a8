#include "backend/cuda/pass_choices.h"

#include <algorithm>
#include <array>
#include <utility>

#include "simile/limits.h"

namespace simile::backend::cuda {
namespace {

// A pass holds at most this many queries; larger batches take several passes.
constexpr unsigned kLargestBatch = 1'024;
constexpr std::array<unsigned, 8> kBatches{1, 32, kLargestBatch, 64, 128, 8, 16, 256};

constexpr auto kClasses = [] {
  struct Hits {
    unsigned max, timed;
  };
  constexpr std::array<Hits, 3> kHits{{{32, 10}, {128, 100}, {kHitsMax, 1'000}}};
  std::array<PassClass, kBatches.size() * kHits.size()> classes;
  std::size_t next = 0;
  for (const Hits hits : kHits) {
    for (const unsigned batch : kBatches) classes[next++] = {batch, hits.max, hits.timed};
  }
  return classes;
}();

// A choice must take less time than the rules' pass by this share; a smaller gain is noise.
constexpr double kGain = 0.03;
// If two times of one plan differ by more than this share, another program uses the card.
constexpr double kTimesDiffer = 0.25;
// Forms are tried only for variants that take at most this multiple of the fastest time. On an H200
// no form of finish, exchange, gate or tile took a third off a pass.
constexpr double kFormsTriedWithin = 1.5;

constexpr std::array<unsigned, 4> kSecondGates{0, 4, 8, 16};
constexpr std::array<double, 3> kTileFactors{0.5, 2, 4};
// The filters that are timed: one row in this many passes. FilterCache has no space for the lists
// of filters that pass more rows.
constexpr std::array<unsigned, 3> kListShares{128, 64, 32};

// The trials of one class.
class ClassTrials {
 public:
  ClassTrials(const ChoiceTask& task, const PassClass& batch_class)
      : task_(task), class_(batch_class), demand_(task.demand(batch_class)) {}

  // Empty when the rules have no pass for the whole class, or when the trials were stopped.
  std::optional<MeasuredPass> Run() {
    const auto planned =
        PlanPass(task_.card, task_.tuning, task_.workspace, task_.segment, demand_);
    if (!planned || planned->slots < demand_.queries) return std::nullopt;
    const std::optional<double> before = Time(*planned);
    if (!before) return std::nullopt;
    fastest_ = {ToChoice(*planned), *before};
    const Timed rules = fastest_;
    TryForms(rules);
    TryOtherVariants(*rules.choice.variant);
    const std::optional<double> after = Time(*planned);
    if (!after) return std::nullopt;
    const auto [least, most] = std::minmax(*before, *after);
    if (most > (1 + kTimesDiffer) * least) stopped_ = true;
    if (stopped_) return std::nullopt;
    if (fastest_.seconds > (1 - kGain) * least) return MeasuredPass{std::nullopt, least, least};
    return MeasuredPass{fastest_.choice, fastest_.seconds, least};
  }

  bool stopped() const { return stopped_; }

 private:
  struct Timed {
    PassChoice choice;
    double seconds = 0;
  };

  std::optional<double> Time(const PassPlan& plan) {
    if (stopped_) return std::nullopt;
    const Trial trial = task_.time(plan, class_);
    stopped_ = trial.end == Trial::End::kStopped;
    if (trial.end != Trial::End::kTimed) return std::nullopt;
    return trial.seconds;
  }

  std::optional<PassPlan> MakePlan(const KernelVariant& variant, const PassChoice* choice) const {
    PassDemand demand = demand_;
    demand.choice = choice;
    auto plan =
        PlanVariant(variant, task_.card, task_.tuning, task_.workspace, task_.segment, demand);
    if (plan && plan->slots < demand.queries) plan.reset();
    return plan;
  }

  void TryOtherVariants(const KernelVariant& of_rules) {
    for (const KernelVariant& variant : KernelVariants()) {
      if (&variant == &of_rules) continue;
      const auto plan = MakePlan(variant, nullptr);
      if (!plan) continue;
      const std::optional<double> seconds = Time(*plan);
      if (!seconds) continue;
      const Timed plain{ToChoice(*plan), *seconds};
      if (plain.seconds < fastest_.seconds) fastest_ = plain;
      if (plain.seconds <= kFormsTriedWithin * fastest_.seconds) TryForms(plain);
    }
  }

  // Changes one part of the form after the other, and keeps each change that is faster.
  void TryForms(const Timed& plain) {
    Timed best = plain;
    const auto with = [&](auto part, auto value) {
      PassChoice other = best.choice;
      other.*part = value;
      Try(other, best);
    };
    for (const FinishForm form : kFinishForms) with(&PassChoice::finish, form);
    with(&PassChoice::is_mapped, !plain.choice.is_mapped);
    if (IsScan(plain.choice.variant->strategy)) {
      for (const unsigned share : kSecondGates) with(&PassChoice::second_gate_share, share);
    } else {
      for (const double factor : kTileFactors) with(&PassChoice::tile_factor, factor);
    }
    if (best.seconds < fastest_.seconds) fastest_ = best;
  }

  void Try(const PassChoice& choice, Timed& best) {
    const auto plan = MakePlan(*choice.variant, &choice);
    const auto known = MakePlan(*choice.variant, &best.choice);
    // A change that the variant does not admit leads to a plan that was already timed.
    if (!plan || !known || IsSame(*plan, *known)) return;
    const std::optional<double> seconds = Time(*plan);
    if (seconds && *seconds < best.seconds) best = {choice, *seconds};
  }

  static bool IsSame(const PassPlan& one, const PassPlan& other) {
    return ToChoice(one) == ToChoice(other) && one.tile_rows == other.tile_rows;
  }

  const ChoiceTask& task_;
  const PassClass& class_;
  const PassDemand demand_;
  bool stopped_ = false;
  Timed fastest_;
};

// Lists are faster when few rows pass: tries more and more rows until a list is slower. Returns
// false when the trials were stopped.
bool MeasureGatherShare(const ChoiceTask& task, PassChoices& choices) {
  unsigned share = 2 * kListShares.front();
  for (const unsigned one_row_in : kListShares) {
    const Trial list = task.time_filtered(one_row_in, true);
    const Trial mask = task.time_filtered(one_row_in, false);
    if (list.end == Trial::End::kStopped || mask.end == Trial::End::kStopped) return false;
    const bool list_wins = list.end == Trial::End::kTimed && mask.end == Trial::End::kTimed &&
                           list.seconds <= mask.seconds;
    if (!list_wins) break;
    share = one_row_in;
  }
  choices.set_gather_share(share);
  return true;
}

// Whether a trial can have made this choice. Checked because a file may hold anything.
bool IsKnown(const GpuPassChoice& kept) {
  return std::ranges::count(kSecondGates, kept.second_gate_share) > 0 &&
         (kept.tile_factor == 1 || std::ranges::count(kTileFactors, kept.tile_factor) > 0);
}

}  // namespace

std::span<const PassClass> PassClasses() { return kClasses; }

PassChoices::PassChoices(const GpuChoices& kept) : PassChoices() {
  gather_share_ = kept.gather_share;
  sufficient_batch_ = kept.sufficient_batch;
  for (const GpuPassChoice& pass : kept.passes) {
    const auto of = std::ranges::find_if(kClasses, [&](const PassClass& each) {
      return each.queries_max == pass.queries_max && each.hits_max == pass.hits_max;
    });
    const auto variant = std::ranges::find(KernelVariants(), pass.variant, &KernelVariant::name);
    const bool is_of_rules = pass.variant.empty();
    if (of == kClasses.end() || !IsKnown(pass)) continue;
    if (!is_of_rules && variant == KernelVariants().end()) continue;
    MeasuredPass measured{std::nullopt, pass.seconds, pass.rules_seconds};
    if (!is_of_rules) {
      measured.choice = {&*variant, pass.finish, pass.is_mapped, pass.second_gate_share,
                         pass.tile_factor};
    }
    Set(static_cast<std::size_t>(of - kClasses.begin()), measured);
  }
}

GpuChoices PassChoices::ToKeep() const {
  GpuChoices kept;
  kept.gather_share = gather_share_;
  kept.sufficient_batch = sufficient_batch_;
  for (std::size_t i = 0; i < by_class_.size(); ++i) {
    if (!by_class_[i]) continue;
    const MeasuredPass& measured = *by_class_[i];
    GpuPassChoice& pass = kept.passes.emplace_back();
    pass.queries_max = kClasses[i].queries_max;
    pass.hits_max = kClasses[i].hits_max;
    pass.seconds = measured.seconds;
    pass.rules_seconds = measured.rules_seconds;
    if (!measured.choice) continue;
    pass.variant = measured.choice->variant->name;
    pass.finish = measured.choice->finish;
    pass.is_mapped = measured.choice->is_mapped;
    pass.second_gate_share = measured.choice->second_gate_share;
    pass.tile_factor = measured.choice->tile_factor;
  }
  return kept;
}

const PassChoice* PassChoices::Find(unsigned queries, unsigned hits_max) const {
  const unsigned in_pass = std::min(queries, kLargestBatch);
  std::size_t found = by_class_.size();
  for (std::size_t i = 0; i < by_class_.size(); ++i) {
    const PassClass& each = kClasses[i];
    if (each.queries_max < in_pass || each.hits_max < hits_max) continue;
    if (found == by_class_.size() ||
        std::pair(each.hits_max, each.queries_max) <
            std::pair(kClasses[found].hits_max, kClasses[found].queries_max)) {
      found = i;
    }
  }
  if (found == by_class_.size() || !by_class_[found]) return nullptr;
  const std::optional<PassChoice>& choice = by_class_[found]->choice;
  return choice ? &*choice : nullptr;
}

void MeasureChoices(const ChoiceTask& task, PassChoices& choices) {
  for (std::size_t i = 0; i < kClasses.size(); ++i) {
    // After the shortest answers, and before the classes that take the most time.
    const bool is_next = i == kBatches.size() && choices.gather_share() == 0;
    if (is_next && !MeasureGatherShare(task, choices)) return;
    if (choices.Has(i) || kClasses[i].queries_max > task.segment.row_count) continue;
    ClassTrials trials(task, kClasses[i]);
    if (const auto measured = trials.Run()) choices.Set(i, *measured);
    if (trials.stopped()) return;
  }
}

}  // namespace simile::backend::cuda
