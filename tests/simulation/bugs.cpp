#include "simulation/bugs.h"

namespace simile::simulation {
namespace {

constexpr BugInfo kBugs[] = {
    {Bug::kNotifiesBeforeAdding, "NotifiesBeforeAdding", "queue", "calls",
     "a completer is woken before it has the answer"},
    {Bug::kForgetsEarlyCancel, "ForgetsEarlyCancel", "queue", "calls",
     "a cancel just before the call is queued is lost"},
    {Bug::kKeepsOldExpiry, "KeepsOldExpiry", "queue", "calls",
     "nobody is woken for a nearer deadline"},
    {Bug::kGivesBytesBackTwice, "GivesBytesBackTwice", "queue", "calls",
     "a cancelled call gives its bytes back twice"},
    {Bug::kTwoLead, "TwoLead", "queue", "calls", "a thread leads while another does"},
    {Bug::kLosesWakeUp, "LosesWakeUp", "queue", "calls",
     "a wake-up during the last slice is forgotten"},
    {Bug::kLeavesLeadEarly, "LeavesLeadEarly", "queue", "calls",
     "answers are handed over after the lead is given up"},
    {Bug::kSharesAcrossSnapshots, "SharesAcrossSnapshots", "scheduler", "calls",
     "calls of two snapshots share a search"},
    {Bug::kKeepsSearchesOfRemoved, "KeepsSearchesOfRemoved", "scheduler", "calls",
     "a removed call still counts as waiting"},
    {Bug::kChargesNoPlainWork, "ChargesNoPlainWork", "scheduler", "shares",
     "the plain lane is not charged"},
    {Bug::kSavesIdleTimeUp, "SavesIdleTimeUp", "scheduler", "shares",
     "a collection saves up the time it was idle"},
    {Bug::kKeepsGivenUpPass, "KeepsGivenUpPass", "passes", "calls",
     "a pass goes on whose calls are all given up"},
    {Bug::kMixesPasses, "MixesPasses", "passes", "calls",
     "a slice of small calls goes on with the pass of large ones"},
    {Bug::kChargesLastSlices, "ChargesLastSlices", "passes", "shares",
     "a collection is charged for the last slice of each pass alone"},
    {Bug::kDropsStartedPass, "DropsStartedPass", "passes", "calls",
     "a task is given up while a device works on its pass"},
    {Bug::kPausesPassOfDevice, "PausesPassOfDevice", "passes", "calls",
     "a pass is paused that the schedule does not know"},
    {Bug::kReadsSnapshotTwice, "ReadsSnapshotTwice", "snapshot store", "swaps",
     "a page reads the current snapshot twice"},
    {Bug::kClaimsInTwoSteps, "ClaimsInTwoSteps", "snapshot store", "swaps",
     "two changes claim one collection"},
    {Bug::kNotifiesOldState, "NotifiesOldState", "snapshot store", "swaps",
     "the listener's state is read too early"},
    {Bug::kAwaitsOnlyTheList, "AwaitsOnlyTheList", "snapshot store", "swaps",
     "the snapshot being freed is not awaited"},
    {Bug::kDropsLeaseOnSwap, "DropsLeaseOnSwap", "snapshot store", "swaps",
     "a lease made during a swap is lost"},
    {Bug::kReadsBudgetUnlocked, "ReadsBudgetUnlocked", "publisher", "loads",
     "the free memory is read without the lock"},
    {Bug::kKeepsReservation, "KeepsReservation", "publisher", "loads",
     "a failed read keeps its reservation"},
    {Bug::kReservesTwice, "ReservesTwice", "publisher", "loads",
     "a load reserves twice what it needs, and releases it"},
    {Bug::kReleasesBeforeCounting, "ReleasesBeforeCounting", "publisher", "loads",
     "memory is given up before it is counted"},
    {Bug::kPinsBeforeClaiming, "PinsBeforeClaiming", "publisher", "loads",
     "what is served is read before the claim"},
    {Bug::kKeepsClaim, "KeepsClaim", "publisher", "loads", "a failed change keeps its claim"},
    {Bug::kStopsBeforeSaying, "StopsBeforeSaying", "publisher", "loads",
     "the worker is woken before the stop is set"},
    {Bug::kAdmitsInTwoSteps, "AdmitsInTwoSteps", "publisher", "loads",
     "a change is queued after the check was over"},
};

}  // namespace

std::span<const BugInfo> Bugs() { return kBugs; }

}  // namespace simile::simulation
