/* A page opened from the disk may not fetch another: the search then lists its results without an excerpt of each,
   instead of failing once for every result. */
if (window.location.protocol === "file:") DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;
