/** What a style or a picture is to a unit test. */
export default '<svg/>';
